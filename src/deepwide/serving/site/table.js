// A table of any length: only the rows in sight exist, and the same few elements show whatever is scrolled to.
import { make, setText } from "./dom.js";

const ROW = 30; // pixels, as in site.css
const HEAD = 34;
const EDGE = 18; // borders and a scroll bar
const BEYOND = 8; // rows above and below those in sight

export class RunTable {
  // columns: {key, title, show(row) -> text, value(row), number, class}
  constructor(grid, columns, { onChoose }) {
    Object.assign(this, { grid, columns, onChoose, rows: [], chosen: new Set(), active: -1, sort: null, falling: false, pool: [], frame: 0 });
    grid.setAttribute("aria-colcount", columns.length);
    this.heads = columns.map((column) => {
      const button = make("button", { type: "button", tabindex: "-1" }, column.title);
      const head = make("span", { role: "columnheader", class: column.number ? "number" : "", "aria-sort": "none" }, button);
      button.addEventListener("click", () => this.sortBy(column));
      return head;
    });
    const head = make("div", { class: "head", role: "row", "aria-rowindex": 1 }, ...this.heads);
    this.body = make("div", { class: "body", role: "rowgroup" });
    grid.replaceChildren(make("div", { role: "rowgroup" }, head), this.body);
    grid.querySelector("[role=rowgroup]").style.display = "contents";
    grid.addEventListener("scroll", () => this.schedule(), { passive: true });
    grid.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.schedule()).observe(grid);
    this.onSort = () => {};
    this.onActive = () => {};
  }

  sortBy(column) {
    this.falling = this.sort === column && !this.falling;
    this.sort = column;
    this.columns.forEach((each, i) => this.heads[i].setAttribute("aria-sort", each !== column ? "none" : this.falling ? "descending" : "ascending"));
    this.onSort();
  }

  // Rows in the order chosen by the reader; empty values come last
  ordered(rows) {
    const { sort } = this;
    if (!sort) return rows;
    const sign = this.falling ? -1 : 1;
    const keyed = rows.map((row) => [sort.value(row), row]);
    const isEmpty = (value) => value === null || value === undefined || value === "";
    keyed.sort(([a], [b]) => (isEmpty(a) || isEmpty(b) ? isEmpty(a) - isEmpty(b) : sign * (typeof a === "string" ? a.localeCompare(b) : a - b)));
    return keyed.map(([, row]) => row);
  }

  show(rows) {
    const before = this.rows[this.active]?.id;
    this.rows = rows;
    this.active = before === undefined ? -1 : rows.findIndex((row) => row.id === before);
    this.grid.setAttribute("aria-rowcount", rows.length + 1);
    this.body.style.height = `${rows.length * ROW}px`;
    this.grid.style.setProperty("--rows", `${HEAD + rows.length * ROW + EDGE}px`);
    this.schedule();
  }

  schedule() {
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.render();
      });
    }
  }

  render() {
    const first = Math.max(0, Math.floor(this.grid.scrollTop / ROW) - BEYOND);
    const last = Math.min(this.rows.length, Math.ceil((this.grid.scrollTop + this.grid.clientHeight) / ROW) + BEYOND);
    while (this.pool.length < last - first) this.pool.push(this.element());
    this.pool.forEach((element, i) => {
      // A row keeps its element while it is in sight: elements are dealt out by the row's number.
      const number = first + ((((i - first) % this.pool.length) + this.pool.length) % this.pool.length);
      element.hidden = number >= last;
      if (!element.hidden) this.fill(element, number);
    });
    const active = this.pool.find((element) => !element.hidden && Number(element.dataset.number) === this.active);
    if (active) this.grid.setAttribute("aria-activedescendant", active.id);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  element() {
    const row = make("div", { class: "run", role: "row", id: `run-${this.pool.length}` }, ...this.columns.map((column) => make("span", { role: "gridcell", class: [column.number ? "number" : "", column.class ?? ""].join(" ").trim() })));
    row.addEventListener("click", () => {
      this.active = Number(row.dataset.number);
      this.onActive(this.rows[this.active]);
      this.choose(this.rows[this.active]);
    });
    this.body.append(row);
    return row;
  }

  fill(element, number) {
    const row = this.rows[number];
    element.dataset.number = number;
    element.style.transform = `translateY(${number * ROW}px)`;
    element.setAttribute("aria-rowindex", number + 2);
    element.setAttribute("aria-selected", this.chosen.has(row.id));
    element.classList.toggle("bad", row.bad);
    element.classList.toggle("bare", row.bad && !row.depth);
    element.classList.toggle("active", number === this.active);
    this.columns.forEach((column, i) => {
      const cell = element.children[i];
      const text = column.show(row);
      setText(cell, text);
      if (column.hint) cell.title = text;
      if (column.state) cell.className = `state ${row.state}`;
    });
  }

  choose(row) {
    if (!row) return;
    this.onChoose(row);
    this.schedule();
  }

  key(event) {
    if (event.target !== this.grid || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((this.grid.clientHeight - HEAD) / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      event.preventDefault();
      this.active = Math.max(0, Math.min(this.rows.length - 1, (this.active < 0 ? -1 : this.active) + steps[event.key]));
      const top = this.active * ROW;
      if (top < this.grid.scrollTop) this.grid.scrollTop = top;
      const below = top + ROW + HEAD - this.grid.clientHeight;
      if (below > this.grid.scrollTop) this.grid.scrollTop = below;
      this.onActive(this.rows[this.active]);
      this.schedule();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.choose(this.rows[this.active]);
    }
  }
}
