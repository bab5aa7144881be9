// Laws: from block parameters N to a depth with its interval, and what another depth costs (deepwide.laws).
// A law here is what constants.py wrote of it; a point of its curve is [value, low, high], low NaN without errors.
import { brief, fixed, Refusal, showCount } from "./numbers.js";

const NaNs = (L) => [L, NaN, NaN];
const within = (N, [small, large]) => small / 1.01 <= N && N <= large * 1.01; // but for a plan's rounding

function solve(N, a, b) {
  const target = Math.log(N / 12) - 2 * a;
  let u = Math.min(target, Math.log(Math.max(target, 1) / (2 * b)));
  for (let i = 0; i < 60; i++) {
    const step = (u + 2 * b * Math.exp(u) - target) / (1 + 2 * b * Math.exp(u));
    u -= step;
    if (Math.abs(step) < 1e-13 * Math.max(1, Math.abs(u))) break;
  }
  return Math.exp(u);
}

// np.interp: straight lines between points, and the end values beyond them
function interpolate(x, xs, ys) {
  const last = xs.length - 1;
  if (x >= xs[last]) return ys[last];
  if (!(x > xs[0])) return ys[0];
  let low = 0;
  let high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle;
    else high = middle;
  }
  return ((ys[low + 1] - ys[low]) / (xs[low + 1] - xs[low])) * (x - xs[low]) + ys[low];
}

const CURVES = {
  transition(law, N, z) {
    const L = solve(N, law.a, law.b);
    if (!law.covariance) return NaNs(L);
    const [[aa, ab], [, bb]] = law.covariance;
    const error = (2 * Math.sqrt(aa + 2 * L * ab + L * L * bb)) / (1 / L + 2 * law.b);
    return [L, Math.max(L - z * error, 0), L + z * error];
  },
  ridge(law, N, z) {
    const far = Math.log(N / law.centre_params);
    const base = law.base_a === null ? 1 : solve(N, law.base_a, law.base_b);
    const L = base * Math.exp(law.shift + law.drift * far);
    if (!law.covariance) return NaNs(L);
    const [[ss, sd], [, dd]] = law.covariance;
    const [low, high] = law.fitted_block_params ?? [N, N];
    const beyond = law.growth_error * Math.log(N / Math.min(Math.max(N, low), high));
    const error = z * Math.sqrt(Math.max(ss + 2 * far * sd + far ** 2 * dd, 0) + beyond ** 2);
    return [L, L * Math.exp(-error), L * Math.exp(error)];
  },
  surface(law, N) {
    const L = Math.exp(interpolate(Math.log(N), law.table.log_params, law.table.log_depth));
    if (!law.limits) return NaNs(L);
    const [at, low, high] = law.limits;
    return [L, L * Math.exp(interpolate(Math.log(N), at, low)), L * Math.exp(interpolate(Math.log(N), at, high))];
  },
  aspect: (law, N) => NaNs(Math.cbrt(N / (12 * law.ratio ** 2))),
  power: (law, N) => NaNs(law.anchor_depth * (N / law.anchor_params) ** law.exponent),
};

const ADVICE = {
  indifferent: (law) => law.about,
  narrower: (law) => law.about,
  ceiling: (law) => `at most ${brief(law.low)}–${brief(law.high)} layers`,
  vocabulary(law, N, vocab) {
    const least = N / (12 * Number(vocab) ** 2);
    return law.about + (least < 1 ? ": no limit here" : `, so at least ${fixed(least, 1)} layers`);
  },
};

// An Interval: {value, low, high}, the limits null where there are none
export const interval = ([value, low, high]) =>
  Number.isNaN(low) ? { value, low: null, high: null } : { value, low, high };

export class Laws {
  constructor(constants) {
    Object.assign(this, { all: constants.laws, costs: constants.costs, z: constants.z95 });
    this.published = this.all.filter((law) => law.published);
  }

  named(key) {
    const law = this.all.find((each) => each.key === key);
    if (!law) throw new Refusal(`this page has no law '${String(key).slice(0, 60)}': choose one from its list.`);
    return law;
  }

  depths(law, N) {
    return CURVES[law.kind](law, N, this.z);
  }

  depthAt(law, N) {
    return this.depths(law, N)[0];
  }

  // The chosen law and all other published ones
  rivals(chosen) {
    return [chosen, ...this.published.filter((law) => law.key !== (chosen.equals ?? chosen.key))];
  }

  isExtrapolated(law, N) {
    const sizes = law.fitted_block_params;
    return sizes !== null && !within(N, sizes);
  }

  fittedWords(law) {
    return `fitted on ${(law.fitted_block_params ?? []).map((size) => showCount(size)).join(" to ")}`;
  }

  opinion(law, N, vocab) {
    if (!law.predicts) return { law: law.name, depth: null, low: null, high: null, words: ADVICE[law.kind](law, N, vocab), status: law.status };
    const { value, low, high } = interval(this.depths(law, N));
    const words = law.about + (this.isExtrapolated(law, N) ? ` (extrapolated: ${this.fittedWords(law)})` : "");
    return { law: law.name, depth: value, low, high, words, status: law.status };
  }

  reference(law) {
    return law.bowl.reference ? this.named(law.bowl.reference) : law;
  }

  // Extra loss in percent of one depth instead of another at equal N; null far beyond the data
  cost(depth, insteadOf, N, law) {
    const best = interval(this.depths(this.reference(law), N));
    let placeError = 0;
    if (law.bowl.error !== null || law.bowl.log_error !== null) {
      for (const limit of [best.low, best.high]) {
        if (limit) placeError = Math.max(placeError, Math.abs(Math.log(limit / best.value)));
      }
    }
    return this.bowlCost(law.bowl, Math.log(depth / best.value), Math.log(insteadOf / best.value), placeError);
  }

  // ln of the loss over that of the law's own best depth, if the law is right; NaN far beyond the data
  ownCost(depth, N, law) {
    const { bowl } = law;
    const x = Math.log(depth / this.depthAt(law.own_bowl ? this.reference(law) : law, N));
    const [low, high] = bowl.x_range;
    const isLog = bowl.log_error !== null;
    const steeper = isLog ? bowl.curvature * Math.expm1(this.z * bowl.log_error) : this.z * Math.sqrt(bowl.covariance[1][1]);
    const edge = x < 0 ? low - this.costs.slack : high + this.costs.slack;
    const further = Math.max(0, x * x - edge * edge);
    return Math.min((isLog ? 0 : bowl.slope) * x + bowl.curvature * (x * x) + steeper * further, this.costs.largest_log);
  }

  bowlCost(bowl, x, insteadOf, placeError) {
    const [low, high] = bowl.x_range;
    if (!(low - this.costs.slack <= Math.min(x, insteadOf) && Math.max(x, insteadOf) <= high + this.costs.slack)) return null;
    const linear = x - insteadOf;
    const square = x * x - insteadOf * insteadOf;
    if (bowl.log_error !== null) return this.profiledCost(bowl, linear, square, placeError);
    const [[v11, v12], [, v22]] = bowl.covariance;
    const variance = Math.max(0, linear * linear * v11 + 2 * linear * square * v12 + square * square * v22);
    const value = bowl.slope * linear + bowl.curvature * square;
    const error = Math.hypot(this.z * Math.sqrt(variance), 2 * bowl.curvature * linear * placeError);
    const [middle, least, most] = [value, value - error, value + error].map((v) => 100 * Math.expm1(Math.min(v, this.costs.largest_log)));
    return { value: middle, low: least, high: most };
  }

  // The range over the ellipse of what 95% allow
  profiledCost(bowl, linear, square, placeError) {
    const { angles, largest_log: largest } = this.costs;
    const limits = Array.from({ length: angles }, (_, step) => {
      const angle = (2 * Math.PI * step) / angles;
      return bowl.curvature * Math.exp(this.z * bowl.log_error * Math.cos(angle)) * (square + 2 * linear * placeError * Math.sin(angle));
    });
    const [value, low, high] = [bowl.curvature * square, Math.min(...limits), Math.max(...limits)].map((v) => 100 * Math.expm1(Math.min(v, largest)));
    return { value, low, high };
  }

  // Where all public sets together put the best depth
  measuredOptimum(N, least = 0) {
    return interval(this.depths(this.named(this.costs.measured), N).map((L) => Math.max(least, L)));
  }

  // Why a cost is an extrapolation here, or null
  outsideTheData(depth, N, law) {
    const verb = law.own_bowl ? "fitted" : "measured";
    const sizes = law.bowl.sizes ?? law.fitted_block_params;
    if (sizes !== null && !within(N, sizes)) {
      const [small, large] = sizes.map((size) => showCount(size, law.own_bowl ? 3 : 2));
      return `${verb} from ${small} to ${large} block parameters only`;
    }
    const x = Math.log(depth / this.depthAt(this.reference(law), N));
    const [low, high] = law.bowl.x_range;
    if (!(low <= x && x <= high)) {
      return `${verb} from ${fixed(Math.exp(low), 2)} to ${fixed(Math.exp(high), 1)} times the best depth only`;
    }
    return null;
  }

  stepTime(depth, insteadOf) {
    return Math.exp(this.costs.step_time * Math.log(depth / insteadOf));
  }
}
