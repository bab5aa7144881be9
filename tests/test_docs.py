"""The documentation tells the truth: its commands, programs, links and numbers are tried (how: benchmarks/pages.py)."""

import ast
import doctest
import importlib.util
import inspect
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from benchmarks.page_tables import (
    ROOT,
    design_tables,
    fit_tables,
    joint_tables,
    published_studies,
    rank_tables,
    result,
    study_tables,
    sweep_tables,
)
from benchmarks.pages import FENCE, PAGES, Command, blocks, commands, run

import deepwide
from deepwide.cli.app import app, load
from deepwide.studies import find_study, studies

COMMANDS = [command for page in PAGES for command in commands(page)]
LANGUAGES = {"console", "sh", "python", "toml", "json", "text"}
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?k?")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@pytest.mark.parametrize("command", COMMANDS, ids=[f"{c.page.name}: {c.words}" for c in COMMANDS])
def test_a_command_in_the_docs_prints_what_the_page_shows(command: Command) -> None:
    assert run(command.words) == (command.code, command.shown), f"{command.page.name}: run `make docs`"


@every_page
def test_every_block_says_what_it_is(page: Path) -> None:
    languages = {language for language, _ in FENCE.findall(page.read_text(encoding="utf-8"))}
    assert languages <= LANGUAGES
    for content in blocks(page, "toml"):
        tomllib.loads(content)
    for content in blocks(page, "json"):
        json.loads(content)


@every_page
def test_commands_that_are_not_run_are_at_least_right(page: Path) -> None:
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            check_shell(shlex.split(line, comments=True))


def check_shell(words: list[str]) -> None:
    """A command whose program, verb, options and files of ours exist."""
    if "-m" in words and words[words.index("-m") + 1] == "deepwide":  # torchrun -m deepwide train
        words = ["deepwide", *words[words.index("-m") + 2 :]]
    match words:
        case []:
            return
        case ["deepwide", *rest]:
            check_deepwide(rest)
        case ["make", target, *_]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), words
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module), words
        case ["pip", "install", *wanted]:
            extras = re.findall(r"\[([\w,]+)\]", " ".join(wanted))
            declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            assert {name for extra in extras for name in extra.split(",")} <= declared.keys(), words
        case ["git" | "cd", *_]:
            return
        case _:
            raise AssertionError(f"a page shows a command that nothing checks: {shlex.join(words)}")
    for word in words:
        if re.match(r"(sweeps|results|docs|benchmarks)/\S*\.\w+$", word) and "--to" not in words:
            assert (ROOT / word).exists(), word


def check_deepwide(words: list[str]) -> None:
    """The verb exists and has the options."""
    load()
    command: Any = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    alone = getattr(command, "invoke_without_command", False) and (not words or words[0].startswith("-"))
    assert alone or not getattr(command, "commands", None), f"no such verb: {words}"
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        if word.startswith("--"):
            assert word.partition("=")[0] in known | {"--help"}, f"{command.name} has no option {word}"


def test_a_wrong_command_on_a_page_would_be_noticed() -> None:
    for words in (
        "deepwide paln 1B",
        "deepwide plan 1B --precisoin x",
        "make tuor",
        "deepwide sweep run sweeps/no.toml",
    ):
        with pytest.raises(AssertionError):
            check_shell(words.split())


PROGRAMS = [(page, number, code) for page in PAGES for number, code in enumerate(blocks(page, "python", "py"), 1)]


@pytest.mark.parametrize(("page", "number", "code"), PROGRAMS, ids=[f"{p.name} {n}" for p, n, _ in PROGRAMS])
def test_python_in_the_docs_runs(
    page: Path, number: int, code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    config = deepwide.write_config(deepwide.find_model("llama-3-8b").shape, "llama")
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "results").symlink_to(ROOT / "results")
    (tmp_path / "sweeps").symlink_to(ROOT / "sweeps")
    if ">>> " in code:
        run_session(code, f"{page.name}, block {number}")
    else:
        run_program(code, str(page))


def test_the_api_page_shows_every_public_name_and_its_arguments() -> None:
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^`deepwide\.(\w+)\(([^)`]*)\)`$", page, re.MULTILINE))
    for name, arguments in shown.items():
        parameters = inspect.signature(getattr(deepwide, name)).parameters.values()
        stars = {"VAR_KEYWORD": "**", "VAR_POSITIONAL": "*"}
        names = [stars.get(p.kind.name, "") + p.name for p in parameters]
        assert [argument for argument in re.split(r",\s+", arguments) if argument != "*"] == names, name
    assert {name for name in deepwide.__all__ if not re.search(rf"\b{name}\b", page)} == set()


def run_session(code: str, name: str) -> None:
    test = doctest.DocTestParser().get_doctest(code, {}, name, None, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append)
    assert not report, "".join(report)


def run_program(code: str, name: str) -> None:
    """Statement by statement: an expression followed by a literal in a comment must have that value."""
    names: dict[str, Any] = {}
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), name, "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), name, "eval"), names)
        comment = lines[(statement.end_lineno or 1) - 1][statement.end_col_offset :].strip().removeprefix("#").strip()
        try:
            shown = ast.literal_eval(comment)
        except (ValueError, SyntaxError):
            continue  # words, or nothing
        assert value == shown, f"{name}: {ast.unparse(statement)} is {value!r}"


def test_a_wrong_result_in_a_comment_would_be_noticed() -> None:
    run_program("x = 2\nx + 1  # 3\nx  # a number", "page")
    with pytest.raises(AssertionError, match="x \\+ 1 is 3"):
        run_program("x = 2\nx + 1  # 4", "page")


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives a page's headings."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@every_page
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", text):
        linked = page.parent / target if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page.name} links to {target}#{anchor}"


@every_page
def test_lines_are_wrapped(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    long = [line for line in text.splitlines() if len(line) > 120 and not line.startswith(("|", "!["))]
    assert long == []


def test_sections_of_the_theory_that_are_cited_exist() -> None:
    root = Path(__file__).parents[1]
    sections = set(re.findall(r"^### (\d\.\d) ", (root / "docs" / "theory.md").read_text(), re.MULTILINE))
    cited: dict[str, Path] = {}
    for place in ("src", "tests", "docs", "benchmarks"):
        for file in (root / place).rglob("*"):
            if file.suffix in (".py", ".md"):
                for first, second in re.findall(r"theory\.md\)?,? \(?(\d+\.\d)(?: and (\d\.\d))?", file.read_text()):
                    cited |= {number: file for number in (first, second) if number}
    assert len(cited) > 5
    assert not cited.keys() - sections, {number: cited[number] for number in cited.keys() - sections}
    assert not any(re.search(r"theory\.md\)?, section", file.read_text()) for file in (root / "src").rglob("*.py"))


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert [
        page.name for page in ROOT.glob("docs/*.md") if f"]({page.name})" not in index and page.stem != "index"
    ] == []


# Numbers on the pages are those in results/, in this order; the sentences around them are nobody's business here.


def shows(page: str, *numbers: str) -> bool:
    """Whether a page has these numbers one after another, whatever stands between them; signs are words here."""
    text = " ".join(FENCE.sub("", (ROOT / page).read_text(encoding="utf-8")).split())
    there, wanted = NUMBER.findall(text), NUMBER.findall(" ".join(numbers))
    return any(there[i : i + len(wanted)] == wanted for i in range(len(there)))


def test_the_readme_is_short_and_says_what_was_measured() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
    measured = result("install.json")
    extras = [measured["extra_megabytes"][name] for name in ("plot", "rank", "fit", "train", "ray")]
    assert shows("README.md", *(f"{size:,}" for size in (measured["core_megabytes"], *extras)))
    pooled = deepwide.evidence()
    cost, place = pooled.factor_2_new, pooled.ratio_new
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"{cost.value:.2f}% of loss ({cost.low:.2f} to {cost.high:.2f})" in readme
    assert f"best depth is {place.low:.2f} to {place.high:.2f}" in readme


def test_the_planner_s_page_quotes_the_measured_misses() -> None:
    measured = result("planner/bench.json")["plan_many"]
    for kind in ("gated", "plain"):
        misses = [f"{100 * measured[kind][which]:.1f}" for which in ("mean_miss", "worst_miss")]
        assert shows("docs/planner.md", *misses), misses


def test_the_page_on_fits_shows_what_was_measured() -> None:
    for name, tables in (("fit", fit_tables()), ("joint", joint_tables())):
        page = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
        for table in tables:
            assert table in page, f"docs/{name}.md is out of date: run `make docs`"
    speed = result("fit/surface_speed.json")
    seconds = speed["ours"]["seconds_with_1000_resamples"]
    assert shows("docs/fit.md", f"{min(seconds):.1f}", f"{max(seconds):.1f}")
    assert shows("docs/fit.md", str(speed["ours"]["evaluations"]))
    assert shows("docs/fit.md", f"{speed['multi_start'][0]['evaluations_for_the_grid'] / 1000:.0f}")


def test_the_page_on_designs_shows_what_was_measured() -> None:
    page = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    for table in design_tables():
        assert table in page, "docs/design.md is out of date: run `make docs`"
    missed = result("fit/lengths.json")["designed"]
    value, low, high = missed["with the sweep of 8M tokens"]["now"]["411K"]
    assert shows("docs/design.md", f"{value:.2g}", f"{low:.2g}", f"{high:.2g}")
    assert shows("docs/design.md", *(f"{missed[f'runs of {length} tokens miss by %']:.1f}" for length in ("1M", "8M")))


def test_the_page_on_sweeps_shows_what_was_measured() -> None:
    page = (ROOT / "docs/sweeps.md").read_text(encoding="utf-8")
    for table in sweep_tables():
        assert table in page, "docs/sweeps.md is out of date: run `make docs`"


def quoted_of_the_calibration() -> Iterator[tuple[str, ...]]:
    calibration = result("fit/calibration.json")
    one, own = (
        calibration["4 depths, 9 sizes, 1 seed, noise 4, 1, 0.5, 0.5% by depth"],
        calibration["the same, each depth's own noise"],
    )
    for design in (one, own):
        for pair in ("2/4", "4/8"):
            yield (f"{100 * design['crossings shown'][f'crossing {pair}']:.0f}",)
        yield (f"{100 * design['coverage']['crossing 1/2']:.0f}",)
    yield (f"{100 * calibration['depth makes no difference']['pairs with a crossing']:.1f}",)
    plans = calibration["laws for plan"]["coverage"].values()
    yield f"{100 * min(plans):.1f}", f"{100 * max(plans):.0f}"


@pytest.mark.parametrize("numbers", [*quoted_of_the_calibration()], ids=" ".join)
def test_the_page_on_fits_quotes_the_calibration(numbers: tuple[str, ...]) -> None:
    assert shows("docs/fit.md", *numbers)


def test_the_page_on_studies_quotes_what_further_runs_would_settle() -> None:
    for pool in result("studies/depth-width-next.json")["pools"].values():
        best = max(pool["plans"].values(), key=lambda plan: plan["limited on both sides"])
        assert shows("docs/studies.md", f"{best['train_flops']:.2g}".replace("e+", "e"))
        assert shows("docs/studies.md", f"{100 * best['limited on both sides']:g}")


def test_the_page_on_training_shows_the_speed_that_was_measured() -> None:
    measured = result("train/speed.json")["rows"]
    assert [(row["depth"], row["width"]) for row in measured] == [(2, 64), (4, 128), (6, 256), (8, 512)]
    for row in measured:
        times = [
            f"{row['ratio_of_deepwide'][peer]:.2f}"
            for peer in ("transformers (as shipped: gelu_new)", "transformers (gelu)", "litgpt")
        ]
        speed, share = row["tokens_per_second"]["deepwide"], row["share_of_peak"]["deepwide"]
        shape = (str(row["depth"]), str(row["width"]))
        assert shows("docs/training.md", *shape, f"{speed:,.0f}", f"{100 * share:.0f}", *times)
    memory = result("train/speed_memory.json")["rows"]
    gains = [f"{row['ratio_of_deepwide']['deepwide (memory given back)']:.2f}" for row in memory]
    assert shows("docs/training.md", *gains)


def test_the_page_on_ranks_shows_the_tables_that_were_measured() -> None:
    page = (ROOT / "docs/rank.md").read_text(encoding="utf-8")
    tables = rank_tables()
    assert len(tables) == 6
    assert all(table in page for table in tables), "docs/rank.md is out of date: run `make docs`"


def test_the_page_on_studies_shows_every_published_verdict() -> None:
    page = (ROOT / "docs/studies.md").read_text(encoding="utf-8")
    tables = verdicts, _, costs = study_tables()
    assert all(table in page for table in tables), "docs/studies.md is out of date: run `make docs`"
    published = published_studies()
    assert published
    assert len(verdicts.splitlines()) == 2 + sum(len(study.verdicts) for study in published.values())
    assert len(costs.splitlines()) == 2 + len(studies())


def test_every_number_of_a_published_verdict_says_what_it_is() -> None:
    for study in published_studies().values():
        for rule, verdict in zip(find_study(study.study).rules, study.verdicts, strict=True):
            assert verdict.measured is None or rule.quantity_in(study.measured, verdict.measured), rule.claim.key


def test_the_page_on_studies_quotes_rank_collapse() -> None:
    measured = published_studies()["rank-collapse-cpu"].measured

    def number(name: str) -> str:
        return f"{measured.number(name).value:.2f}"

    page = "docs/studies.md"
    last = "last relative residual of trained encoders, attention + skip"
    assert shows(page, number("accuracy of trained encoders"), "300", number(last))
    gain = measured.number("log10 of the residual with MLPs over that without")
    assert shows(page, *(f"{value:.2f}" for value in (gain.value, gain.low or 0.0, gain.high or 0.0)))
    by_length = {
        recipe: [row["accuracy"] for row in measured.table("paths") if row["recipe"] == recipe and row["paths"] == 5]
        for recipe in ("original recipe", "fresh examples")
    }
    original, fresh = by_length.values()
    whole = "accuracy of the whole network, "
    assert shows(page, number(f"{whole}original recipe"), "5", f"{original[1]:.2f}", "1", f"{original[6]:.2f}", "6")
    assert shows(page, number(f"{whole}fresh examples"), "2", f"{max(fresh[2:]):.2f}")
    assert shows(page, f"{fresh[1]:.2f}")
    peer = result("studies/peers/rank-collapse.json")
    assert max(peer["largest_difference_of_logits_on_the_same_weights"].values()) < 1e-13
    reached = [f"{peer['reached'][name]['0.4']['seconds']:.1f}" for name in ("authors", "deepwide")]
    assert shows(page, str(peer["ratio_authors_over_deepwide"]), "0.4", *reached)
    pretrained = result("studies/peers/pretrained-collapse.json")["relative_residual_by_layer"]
    assert shows(page, "6", f"{pretrained['attention + skip'][-1]['value']:.2f}")
