// JSON as Python reads it: 4096.0 is no whole number, long integers stay exact, and no key reaches a prototype.
import { Refusal } from "./numbers.js";

// A number that was written as a float
export class Float {
  constructor(value) {
    this.value = value;
  }

  toString() {
    return floatText(this.value);
  }
}

// str(x) of a float
export function floatText(x) {
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) {
    const [mantissa, power] = x.toExponential().split("e");
    return `${mantissa}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  }
  const text = Object.is(x, -0) ? "-0" : String(x);
  return text.includes(".") ? text : `${text}.0`;
}

const DEEPEST = 500; // levels of nesting; no config has ten
const NUMBER_TOKEN = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const STRING_TOKEN = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const WORDS = { true: true, false: false, null: null, NaN: new Float(NaN), Infinity: new Float(Infinity), "-Infinity": new Float(-Infinity) };

export function parseJson(text) {
  let at = 0;
  const fail = (what) => {
    const line = text.slice(0, at).split("\n").length;
    throw new Refusal(`is not JSON: ${what} (line ${line})`);
  };
  const skip = () => {
    while (at < text.length && " \t\n\r".includes(text[at])) at += 1;
  };
  const token = (pattern) => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match) at = pattern.lastIndex;
    return match;
  };
  const string = () => {
    const match = token(STRING_TOKEN);
    return match ? JSON.parse(match[0]) : fail("a text is not closed, or has a control character in it");
  };
  const members = (close, one) => {
    at += 1;
    skip();
    if (text[at] === close) {
      at += 1;
      return;
    }
    for (;;) {
      one();
      skip();
      if (text[at] === close) break;
      if (text[at] !== ",") fail(`expected a comma or ${close}`);
      at += 1;
      skip();
    }
    at += 1;
  };
  const value = (depth) => {
    if (depth > DEEPEST) fail("it is nested too deep");
    skip();
    const first = text[at];
    if (first === '"') return string();
    if (first === "{") {
      const object = Object.create(null);
      members("}", () => {
        if (text[at] !== '"') fail("expected a name in double quotes");
        const name = string();
        skip();
        if (text[at] !== ":") fail("expected a colon");
        at += 1;
        object[name] = value(depth + 1);
      });
      return object;
    }
    if (first === "[") {
      const list = [];
      members("]", () => list.push(value(depth + 1)));
      return list;
    }
    for (const [word, meaning] of Object.entries(WORDS)) {
      if (text.startsWith(word, at)) {
        at += word.length;
        return meaning;
      }
    }
    const match = token(NUMBER_TOKEN);
    if (!match) fail("expected a value");
    if (match[1] !== undefined || match[2] !== undefined) return new Float(Number(match[0]));
    if (match[0].length > 4300) fail("a number has thousands of digits");
    const whole = Number(match[0]);
    return Number.isSafeInteger(whole) ? whole : BigInt(match[0]);
  };
  const result = value(0);
  skip();
  if (at < text.length) fail("something follows the value");
  return result;
}
