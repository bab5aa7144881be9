// Numbers as Python rounds, divides, reads and writes them: deepwide.quantities, the errors' quotes, and Python's own
// formats. A plain number is a float or a small integer; a BigInt is an exact integer.

// What a person must be told in one sentence: Python's DeepwideError.
export class Refusal extends Error {}

// Round half to even, as round() and np.rint do; Math.round rounds halves up.
export function rint(x) {
  const below = Math.floor(x);
  const rest = x - below;
  if (rest !== 0.5) return rest < 0.5 ? below : below + 1;
  return below % 2 === 0 ? below : below + 1;
}

// a / b of exact integers, correctly rounded, as Python divides them.
export function divide(a, b) {
  if (a < 0n) return -divide(-a, b);
  if (a === 0n) return 0;
  const shift = BigInt(Math.max(0, 70 + b.toString(2).length - a.toString(2).length));
  const top = a << shift;
  const quotient = top / b;
  return Number(quotient * b === top ? quotient : quotient | 1n) / 2 ** Number(shift); // a last bit that breaks ties
}

function halfEven(top, bottom) {
  const floor = top / bottom;
  const twice = 2n * (top - floor * bottom);
  return twice > bottom || (twice === bottom && floor % 2n === 1n) ? floor + 1n : floor;
}

function withPoint(whole, digits) {
  const text = whole.toString().padStart(digits + 1, "0");
  return digits ? `${text.slice(0, -digits)}.${text.slice(-digits)}` : text;
}

// f"{x:.2f}". toFixed rounds a tie up and gives up at 1e21, so those are done in integers.
export function fixed(x, digits) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf";
  const size = Math.abs(x);
  const scaled = size * 2 ** (digits + 1);
  if (!Number.isInteger(scaled)) return x.toFixed(digits);
  const exact = halfEven(BigInt(scaled) * 10n ** BigInt(digits), 2n ** BigInt(digits + 1));
  return (x < 0 || Object.is(x, -0) ? "-" : "") + withPoint(exact, digits);
}

// f"{x:.3g}"
export function general(x, digits) {
  if (x === 0) return Object.is(x, -0) ? "-0" : "0";
  if (!Number.isFinite(x)) return fixed(x, 0);
  let [mantissa, power] = Math.abs(x).toExponential(digits - 1).split("e");
  power = Number(power);
  const places = digits - 1 - power;
  const scaled = Math.abs(x) * 2 ** (Math.max(0, places) + 1);
  if (Number.isInteger(scaled)) { // perhaps a tie, which toExponential rounds up
    const more = 2n ** BigInt(Math.max(0, places) + 1);
    const exact = BigInt(scaled);
    const whole = places >= 0 ? halfEven(exact * 10n ** BigInt(places), more) : halfEven(exact, more * 10n ** BigInt(-places));
    const text = whole.toString();
    if (text.length >= digits) { // else the power was rounded up, and that was no tie
      power += text.length - digits;
      mantissa = withPoint(BigInt(text.slice(0, digits)), digits - 1);
    }
  }
  const sign = x < 0 ? "-" : "";
  if (power < -4 || power >= digits) {
    const tail = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
    return `${sign}${tail}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }
  const all = mantissa.replace(".", "");
  let text = all;
  if (power < 0) text = `0.${"0".repeat(-power - 1)}${all}`;
  else if (power < all.length - 1) text = `${all.slice(0, power + 1)}.${all.slice(power + 1)}`;
  return sign + (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
}

// f"{x:+.2f}"
export const signed = (x, digits) => (x < 0 || Object.is(x, -0) ? "" : "+") + fixed(x, digits);

// f"{x:+.1%}"
export const signedPercent = (x, digits) => `${signed(x * 100, digits)}%`;

// f"{n:,}" of a whole number, or of a text of digits
export function grouped(n) {
  const text = typeof n === "number" ? BigInt(n).toString() : String(n);
  return text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

export const plural = (count, noun) => `${grouped(count)} ${noun}${Number(count) === 1 ? "" : "s"}`;

// f"{x:g}"
export const brief = (x) => general(x, 6);

// quantities._plain: significant digits, never with an exponent
function plainly(x, digits) {
  const text = general(x, digits);
  return text.includes("e") ? BigInt(Number(text)).toString() : text;
}

const COUNTS = [["Q", 1e15], ["T", 1e12], ["B", 1e9], ["M", 1e6], ["K", 1e3]];
const BYTES = [["EB", 1e18], ["PB", 1e15], ["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]];

export function showCount(count, digits = 3) {
  const x = Number(count);
  if (x >= 1e18) return general(x, digits);
  for (const [unit, size] of COUNTS) {
    if (x >= size * (1 - 0.5 * Number(`1e-${digits}`))) return plainly(x / size, digits) + unit;
  }
  return plainly(x, digits);
}

export function showBytes(count) {
  const x = Number(count);
  for (const [unit, size] of BYTES) {
    if (x >= size * 0.9995) return `${plainly(x / size, 3)} ${unit}`;
  }
  return `${fixed(x, 0)} B`;
}

// repr(text)
export function pythonRepr(text) {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let inside = "";
  for (const letter of text) {
    const code = letter.codePointAt(0);
    if (letter === "\\" || letter === quote) inside += `\\${letter}`;
    else if (letter === "\n") inside += "\\n";
    else if (letter === "\r") inside += "\\r";
    else if (letter === "\t") inside += "\\t";
    else if (/^[\p{C}\p{Zl}\p{Zp}]$/u.test(letter) || (/^\p{Zs}$/u.test(letter) && letter !== " ")) {
      if (code < 0x100) inside += `\\x${code.toString(16).padStart(2, "0")}`;
      else if (code < 0x10000) inside += `\\u${code.toString(16).padStart(4, "0")}`;
      else inside += `\\U${code.toString(16).padStart(8, "0")}`;
    } else inside += letter;
  }
  return quote + inside + quote;
}

const NUMBER = /^\s*(\d+(?:[_,]\d{3})*(?:\.\d*)?|\.\d+)(e[+-]?\d{1,3})?\s*([a-z]*)\s*$/i;
const COUNT_UNITS = { "": 1n, k: 10n ** 3n, m: 10n ** 6n, b: 10n ** 9n, g: 10n ** 9n, t: 10n ** 12n, q: 10n ** 15n, ki: 2n ** 10n, mi: 2n ** 20n };
const BYTE_UNITS = { "": 1n, b: 1n };
[..."kmgtp"].forEach((letter, i) => {
  for (const b of ["", "b"]) {
    BYTE_UNITS[`${letter}${b}`] = 1000n ** BigInt(i + 1);
    BYTE_UNITS[`${letter}i${b}`] = 1024n ** BigInt(i + 1);
  }
});

function split(text, what) {
  const match = text.length <= 80 ? NUMBER.exec(text) : null;
  if (!match) {
    throw new Refusal(`${pythonRepr(text.slice(0, 40))} is not ${what}: write a positive number such as 350M, 1.3B or 1e12.`);
  }
  const [whole, part = ""] = match[1].replace(/[_,]/g, "").split(".");
  return { digits: BigInt(whole + part || "0"), power: Number((match[2] ?? "e0").slice(1)) - part.length, unit: match[3].toLowerCase() };
}

function wholeNumber({ digits, power }, factor) {
  const most = 10n ** 60n;
  if (power >= 0) {
    const value = digits * 10n ** BigInt(power);
    return value > most ? most : value * factor;
  }
  const bottom = 10n ** BigInt(-power);
  return digits > most * bottom ? most : halfEven(digits * factor, bottom);
}

export function parseCount(text, what = "a size") {
  const parts = split(text, what);
  if (!Object.hasOwn(COUNT_UNITS, parts.unit)) {
    throw new Refusal(`${pythonRepr(text)} is not ${what}: '${parts.unit}' is no unit; write 350M, 1.3B, 2T or 1e12.`);
  }
  const count = wholeNumber(parts, COUNT_UNITS[parts.unit]);
  if (count < 1n || count > 10n ** 40n) throw new Refusal(`${pythonRepr(text)} is not ${what}: it must be between 1 and 1e40.`);
  return count;
}

export function parseBytes(text) {
  const parts = split(text, "a memory size");
  if (!Object.hasOwn(BYTE_UNITS, parts.unit)) {
    throw new Refusal(`${pythonRepr(text)} is not a memory size: write 24GB, 80GiB or a number of bytes.`);
  }
  const count = wholeNumber(parts, BYTE_UNITS[parts.unit]);
  if (count < 1n || count > 10n ** 24n) {
    throw new Refusal(`${pythonRepr(text)} is not a memory size: it must be between 1 byte and 1e24.`);
  }
  return count;
}

const gcd = (a, b) => (b ? gcd(b, a % b) : a);
export const lcm = (a, b) => (a / gcd(a, b)) * b;
