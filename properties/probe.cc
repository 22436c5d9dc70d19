#include "probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "arrange.h"
#include "attest/error_bound.h"
#include "attest/errors.h"
#include "attest/oracle.h"
#include "attest/strides.h"
#include "generators/stream.h"
#include "probe_claims.h"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Problems per question. Readings that stay together through all of them are told apart by nothing.
constexpr int rounds = 6;

struct Size {
  std::int64_t batch = 2, heads = 2, kv_heads = 2, queries = 4, keys = 7, dk = 8, dv = 8;
};

/// What a question may have been taken for.
struct Reading {
  std::string words;
  Case problem;
};
struct Question {
  Case asked;
  std::vector<Reading> readings;
};

/// How a question ended: not answered, or the readings that every answer fits.
struct Settled {
  CallStatus status = CallStatus::ok;
  std::string message;
  std::vector<std::string> readings;
  [[nodiscard]] bool is(std::string_view words) const { return readings.size() == 1 && readings.front() == words; }
  [[nodiscard]] std::string text() const {
    if (status != CallStatus::ok)
      return fmt::format("{}: {}", name_of(status), message.empty() ? "no reason" : message);
    if (readings.empty()) return "an answer that fits no reading";
    return fmt::format("{}{}", fmt::join(readings, " or "), readings.size() > 1 ? ", not told apart" : "");
  }
};

/// A program behind standard input and output, by its id: "exec:…" or a family of adapters such as "pytorch:sdpa".
bool is_program(std::string_view id) {
  const std::string_view family = id.substr(0, id.find(':'));
  if (family.size() == id.size() || family.find_first_of("/.") != std::string_view::npos) return false;  // a path
  static constexpr std::string_view here[] = {"builtin", "core", "document", "fault", "control"};
  return std::ranges::find(here, family) == std::end(here);
}

std::string yes_or_no(bool yes) {
  return yes ? "yes" : "no";
}

class Prober {
 public:
  Prober(Kernel& kernel, std::uint64_t seed) : kernel_(kernel), stream_(seed) {
    const Manifest& m = kernel.manifest();
    if (!m.attention)
      throw UsageError(fmt::format("{}: has no attention entry, and the probes are about one", kernel.id()));
    const auto f32 = std::ranges::find(m.dtypes, DType::f32);
    dtype_ = f32 == m.dtypes.end() ? m.dtypes.front() : *f32;
    result_.manifest = m;
    find_footing();
  }

  Probed run() {
    ask_scale();
    ask_boolean_mask();
    ask_additive_mask(MaskConvention::post_scale);
    ask_additive_mask(MaskConvention::pre_scale);
    ask_causal(Causal::top_left);
    ask_causal(Causal::bottom_right);
    ask_empty_row();
    ask_groups();
    ask_lse();
    ask_strides();
    ask_lengths();
    ask_head_dimensions();
    ask_claims();
    return std::move(result_);
  }

 private:
  /// Multiples of 1/8 in [-1, 1], which every format holds.
  Tensor numbers(const Shape& shape) {
    Tensor tensor(dtype_, shape);
    for (std::int64_t e = 0; e < tensor.elements(); ++e)
      tensor.set(e, static_cast<double>(stream_.between(-8, 8)) / 8.0);
    return tensor;
  }
  Case plain(const Size& s) {
    Case c;
    c[Slot::q] = numbers({s.batch, s.heads, s.queries, s.dk});
    c[Slot::k] = numbers({s.batch, s.kv_heads, s.keys, s.dk});
    c[Slot::v] = numbers({s.batch, s.kv_heads, s.keys, s.dv});
    c.scale = inverse_root(s.dk);
    return c;
  }
  /// M x N, each row with a key that it sees and one that it does not, where N >= 2.
  Tensor hiding(bool boolean, const Size& s) {
    Tensor mask(boolean ? DType::boolean : dtype_, {1, 1, s.queries, s.keys});
    for (std::int64_t i = 0; i < s.queries; ++i) {
      const std::int64_t seen = stream_.below(s.keys), hidden = (seen + 1 + stream_.below(s.keys - 1)) % s.keys;
      for (std::int64_t j = 0; j < s.keys; ++j) {
        const bool sees = j == seen || (j != hidden && stream_.one_in(2));
        mask.set(i * s.keys + j, boolean ? (sees ? 1.0 : 0.0) : (sees ? bias() : -infinity));
      }
    }
    return mask;
  }
  double bias() { return static_cast<double>(stream_.between(-6, 6)) / 2.0; }

  [[nodiscard]] const Arithmetic& arithmetic() const { return kernel_.manifest().arithmetic_for(dtype_); }
  [[nodiscard]] bool fits(const Case& problem, const Tensor& out) const {
    return judge_attention(problem, out, Tensor(), arithmetic()).outcome == Outcome::held;
  }

  template <class Ask>
  Settled settle(Ask&& ask) {
    Settled settled;
    for (int round = 0; round < rounds; ++round) {
      const Question question = ask();
      const Reply reply = kernel_.run(question.asked);
      if (reply.status != CallStatus::ok) return {reply.status, reply.message, {}};
      std::vector<std::string> fitting;
      for (const Reading& reading : question.readings) {
        const bool still = round == 0 || std::ranges::find(settled.readings, reading.words) != settled.readings.end();
        if (still && fits(reading.problem, reply.out)) fitting.push_back(reading.words);
      }
      settled.readings = std::move(fitting);
      if (settled.readings.empty()) break;
    }
    return settled;
  }

  /// A kernel that says it cannot do what its manifest offers is skipped in a run, and contradicts nothing.
  void note(std::string question, bool offered, const Settled& settled, bool does) {
    note(std::move(question), yes_or_no(offered), settled.text(),
         offered && !does && settled.status != CallStatus::unsupported, !offered && does);
  }
  void note(std::string question, std::string declared, std::string found, bool contradicts, bool beyond) {
    result_.answers.push_back({.question = std::move(question),
                               .declared = std::move(declared),
                               .found = std::move(found),
                               .contradicts = contradicts,
                               .beyond = beyond});
  }
  template <class Value>
  static void set_member(std::vector<Value>& values, const Value& value, bool member) {
    std::erase(values, value);
    if (member) values.push_back(value);
  }

  /// A size at which the plainest problem is answered right.
  void find_footing() {
    const Manifest& m = kernel_.manifest();
    std::string last = "no size was tried";
    for (const std::int64_t dk : {std::int64_t{4}, std::int64_t{8}, std::int64_t{16}, std::int64_t{32},
                                  std::int64_t{64}, std::int64_t{128}, m.head_dim_multiple}) {
      if (dk % m.head_dim_multiple != 0 || dk > m.max_head_dim.value_or(dk)) continue;
      size_.dk = size_.dv = dk;
      size_.heads = size_.kv_heads =
          2 * m.heads_multiple <= m.max_heads.value_or(64) ? 2 * m.heads_multiple : m.heads_multiple;
      size_.queries = std::min(size_.queries, m.max_queries.value_or(size_.queries));
      size_.keys = std::min(size_.keys, m.max_keys.value_or(size_.keys));
      const Case c = plain(size_);
      const Reply reply = kernel_.run(c);
      if (reply.status != CallStatus::ok) {
        last = fmt::format("{}: {}", name_of(reply.status), reply.message);
        continue;
      }
      const Verdict verdict = judge_attention(c, reply.out, Tensor(), arithmetic());
      if (verdict.outcome == Outcome::held) return;
      last = verdict.reason;
    }
    throw UsageError(
        fmt::format("{}: answers no plain attention problem in {} right, so nothing can be read from what it answers "
                    "(the last: {}); attest check tells what is wrong",
                    kernel_.id(), name_of(dtype_), last));
  }

  void ask_scale() {
    const Settled settled = settle([&] {
      Case c = plain(size_);
      c.scale = inverse_root(size_.dk) * 0.375;
      Case root = c, one = c;
      root.scale = inverse_root(size_.dk);
      one.scale = 1;
      return Question{c, {{"any scale", c}, {"1/sqrt(dk) whatever is asked", root}, {"no scale at all", one}}};
    });
    const bool any = settled.is("any scale"), declared = kernel_.manifest().any_scale;
    note("any scale", declared, settled, any);
    result_.manifest.any_scale = any;
  }

  void ask_boolean_mask() {
    const Settled settled = settle([&] {
      Case c = plain(size_);
      c[Slot::mask] = hiding(/*boolean=*/true, size_);
      Case inverted = c, added = c;
      inverted[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return 1 - old; });
      added[Slot::mask] = mapped(Tensor(dtype_, c.mask().shape()), [&](std::int64_t e, double) { return c.mask()[e]; });
      return Question{c,
                      {{"true: may attend", c},
                       {"true: hidden", inverted},
                       {"added to the scores as 0 and 1", added},
                       {"ignored", without_mask(c)}}};
    });
    const bool does = settled.is("true: may attend"), declared = kernel_.manifest().bool_masks;
    note("boolean mask", declared, settled, does);
    result_.manifest.bool_masks = does;
  }

  void ask_additive_mask(MaskConvention convention) {
    const bool pre = convention == MaskConvention::pre_scale;
    const Settled settled = settle([&] {
      Case c = plain(size_);
      c[Slot::mask] = hiding(/*boolean=*/false, size_);
      c.mask_convention = convention;
      Case before = c, after = c, hides = c;
      before.mask_convention = MaskConvention::pre_scale;
      after.mask_convention = MaskConvention::post_scale;
      hides[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return std::isinf(old) ? old : 0.0; });
      return Question{c,
                      {{"scale·qk + mask", after},
                       {"scale·(qk + mask)", before},
                       {"-inf hides, other values are ignored", hides},
                       {"ignored", without_mask(c)}}};
    });
    const bool does = settled.is(pre ? "scale·(qk + mask)" : "scale·qk + mask");
    const Manifest& m = kernel_.manifest();
    const bool listed = std::ranges::find(m.mask_conventions, convention) != m.mask_conventions.end();
    const bool declared = m.additive_masks && listed;
    note(pre ? "additive mask before the scale" : "additive mask after the scale", declared, settled, does);
    Manifest& found = result_.manifest;
    set_member(found.mask_conventions, convention, does);
    if (!pre) {
      found.additive_masks = does;
    } else {
      found.additive_masks = found.additive_masks || does;
      // A key of the manifest that may not be empty, and says nothing where no mask is added.
      if (found.mask_conventions.empty()) found.mask_conventions = {MaskConvention::post_scale};
    }
  }

  void ask_causal(Causal causal) {
    Size s = size_;
    // As many queries as keys would not tell the alignments apart; fewer leave no row without a key.
    s.queries = std::max<std::int64_t>(1, std::min(s.queries, s.keys - 2));
    const Settled settled = settle([&] {
      Case c = plain(s);
      c.causal = causal;
      Case top = c, bottom = c;
      top.causal = Causal::top_left;
      bottom.causal = Causal::bottom_right;
      return Question{c, {{"top-left", top}, {"bottom-right", bottom}, {"ignored", without_mask(c)}}};
    });
    const Manifest& m = kernel_.manifest();
    const bool declared = std::ranges::find(m.causal, causal) != m.causal.end();
    const bool does = settled.is(name_of(causal));
    note(fmt::format("causal, {}", name_of(causal)), declared, settled, does);
    set_member(result_.manifest.causal, causal, does);
  }

  /// What row 1 of the answer holds, which sees no key.
  FullyMaskedRow row_of(const Case& c, const Tensor& out, std::string& words) {
    const Shape shape = out.shape();
    const std::int64_t M = shape[2], dv = shape[3];
    bool nan = true, zero = true;
    Tensor row(out.dtype(), {shape[0], shape[1], 1, dv});
    for (std::int64_t e = 0; e < row.elements(); ++e) {
      const double x = out[(e / dv * M + 1) * dv + e % dv];
      nan = nan && std::isnan(x);
      zero = zero && x == 0;
      row.set(e, x);
    }
    Case equal = with_queries(without_mask(c), {1});
    equal[Slot::q] = mapped(equal.q(), [](std::int64_t, double) { return 0.0; });
    const FullyMaskedRow found = nan                ? FullyMaskedRow::nan
                                 : zero             ? FullyMaskedRow::zero
                                 : fits(equal, row) ? FullyMaskedRow::uniform
                                                    : FullyMaskedRow::undeclared;
    words = found == FullyMaskedRow::undeclared ? fmt::format("something else, such as {:.6g}", row[0])
                                                : std::string(name_of(found));
    return found;
  }

  void ask_empty_row() {
    const Manifest& m = result_.manifest;
    if ((!m.bool_masks && !m.additive_masks) || size_.queries < 2) return;
    FullyMaskedRow found = FullyMaskedRow::undeclared;
    std::string words;
    for (int round = 0; round < rounds; ++round) {
      Case c = plain(size_);
      const bool boolean = m.bool_masks && (round % 2 == 0 || !m.additive_masks);
      c[Slot::mask] = hiding(boolean, size_);
      c.mask_convention = m.mask_conventions.front();
      for (std::int64_t j = 0; j < size_.keys; ++j) c[Slot::mask].set(size_.keys + j, boolean ? 0.0 : -infinity);
      const Reply reply = kernel_.run(c);
      std::string now;
      FullyMaskedRow policy = FullyMaskedRow::undeclared;
      if (reply.status == CallStatus::rejected) {
        policy = FullyMaskedRow::error;
        now = name_of(policy);
      } else if (reply.status != CallStatus::ok) {
        now = fmt::format("{}: {}", name_of(reply.status), reply.message);
      } else {
        policy = row_of(c, reply.out, now);
      }
      if (round > 0 && policy != found) {
        found = FullyMaskedRow::undeclared;
        words += fmt::format(" and {}, not always the same", now);
        break;
      }
      found = policy;
      words = now;
    }
    const FullyMaskedRow declared = kernel_.manifest().fully_masked_row;
    const bool stated = declared != FullyMaskedRow::undeclared;
    result_.answers.push_back({.question = "row without a key",
                               .declared = stated ? std::string(name_of(declared)) : "nothing",
                               .found = words,
                               .contradicts = stated && found != declared,
                               .beyond = !stated && found != FullyMaskedRow::undeclared});
    result_.manifest.fully_masked_row = found;
  }

  void ask_groups() {
    const Manifest& m = kernel_.manifest();
    Size s = size_;
    s.kv_heads = 2;
    s.heads = 4 * m.heads_multiple;
    if (s.heads > m.max_heads.value_or(s.heads)) return;
    const std::int64_t group = s.heads / s.kv_heads;
    const Settled settled = settle([&] {
      const Case c = plain(s);
      const auto mapped_by = [&](auto&& kv_head) {
        Case expanded = c;
        for (const Slot slot : {Slot::k, Slot::v}) {
          const Tensor& narrow = c[slot];
          const std::int64_t page = narrow.shape()[2] * narrow.shape()[3];
          Tensor wide(dtype_, {s.batch, s.heads, narrow.shape()[2], narrow.shape()[3]});
          for (std::int64_t e = 0; e < wide.elements(); ++e) {
            const std::int64_t head = e / page;
            wide.set(e, narrow[(head / s.heads * s.kv_heads + kv_head(head % s.heads)) * page + e % page]);
          }
          expanded[slot] = std::move(wide);
        }
        return expanded;
      };
      return Question{
          c,
          {{"head h uses h / group", mapped_by([&](std::int64_t h) { return h / group; })},
           {"head h uses h mod the key-value heads", mapped_by([&](std::int64_t h) { return h % s.kv_heads; })},
           {"all use the first", mapped_by([](std::int64_t) { return std::int64_t{0}; })}}};
    });
    const bool does = settled.is("head h uses h / group");
    note("grouped queries", m.grouped_query, settled, does);
    result_.manifest.grouped_query = does;
  }

  void ask_lse() {
    std::set<std::string> found;
    for (int round = 0; round < rounds; ++round) {
      const Case c = plain(size_);
      const Reply reply = kernel_.run(c, dtype_, /*want_lse=*/true);
      if (reply.status != CallStatus::ok || !reply.lse.present()) {
        found = {reply.status == CallStatus::ok ? "none" : fmt::format("{}: {}", name_of(reply.status), reply.message)};
        break;
      }
      const AttentionBounds bounds = attention_bounds(c, arithmetic());
      bool natural = true, binary = true;
      for (std::int64_t row = 0; row < reply.lse.elements(); ++row) {
        const RowBound& b = bounds.rows[static_cast<std::size_t>(row)];
        const double x = reply.lse[row], allowed = b.lse_allowed + b.lse_certificate + 0x1p-50 * std::fabs(b.lse);
        natural = natural && std::fabs(x - b.lse) <= allowed;
        binary = binary && std::fabs(x * std::numbers::ln2 - b.lse) <= allowed;
      }
      found.insert(natural ? "natural logarithm" : binary ? "logarithm to base 2" : "another number");
    }
    const bool does = found == std::set<std::string>{"natural logarithm"}, declared = kernel_.manifest().lse;
    note("log-sum-exp", yes_or_no(declared), fmt::format("{}", fmt::join(found, " or ")), declared && !does,
         !declared && does);
    result_.manifest.lse = does;
  }

  void ask_strides() {
    const bool declared = kernel_.manifest().strides;
    if (!declared && is_program(kernel_.id())) {
      note("strides", "no", "cannot be told: a program is sent strides only where its manifest offers them", false,
           false);
      return;
    }
    const Settled settled = settle([&] {
      Case c = plain(size_);
      const Case dense = c;
      set_layouts(c, parse_layouts("q=token-major k=every-other v=padded-rows out=padded-rows"));
      return Question{c, {{"as they are stated", dense}}};
    });
    const bool does = settled.is("as they are stated");
    note("strides", declared, settled, does);
    result_.manifest.strides = does;
  }

  /// "yes", or what became of the plain problem of that size.
  std::string answer_at(const Size& s) {
    const Case c = plain(s);
    const Reply reply = kernel_.run(c);
    if (reply.status != CallStatus::ok)
      return fmt::format("{}: {}", name_of(reply.status), reply.message.empty() ? "no reason" : reply.message);
    // Nothing to judge: no query, or no key.
    if (s.queries == 0 || s.keys == 0) return "yes";
    return fits(c, reply.out) ? "yes" : "a wrong answer";
  }

  void ask_lengths() {
    const Manifest& m = kernel_.manifest();
    const auto ask = [&](const char* what, std::int64_t queries, std::int64_t keys, bool must) {
      if (queries > m.max_queries.value_or(queries) || keys > m.max_keys.value_or(keys)) return;
      Size s = size_;
      s.queries = queries, s.keys = keys;
      const std::string found = answer_at(s);
      // What a kernel says it cannot do is skipped in a run.
      note(what, must ? "yes" : "either", found, must && found != "yes" && !found.starts_with("unsupported"), false);
    };
    ask("M = 0", 0, size_.keys, true);
    ask("N = 0", size_.queries, 0, false);
    ask("one query", 1, size_.keys, true);
    ask("one key", size_.queries, 1, true);
    ask("more queries than keys", 9, 5, true);
    ask("1023 keys", 2, 1023, true);
    ask("4097 keys", 2, 4097, true);
  }

  void ask_head_dimensions() {
    constexpr std::int64_t widths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 64, 80, 96, 128, 160, 192, 256, 512};
    const Manifest& m = kernel_.manifest();
    const auto offered = [&](std::int64_t d) {
      return d % m.head_dim_multiple == 0 && d <= m.max_head_dim.value_or(d);
    };
    std::vector<std::int64_t> taken;
    std::string wrong;
    for (const std::int64_t d : widths) {
      Size s = size_;
      s.dk = s.dv = d;
      const std::string found = answer_at(s);
      if (found == "yes") {
        taken.push_back(d);
      } else if (offered(d) && !found.starts_with("unsupported")) {
        wrong += fmt::format("{}{}: {}", wrong.empty() ? "" : "; ", d, found);
      }
    }
    // The least multiple all of whose tried multiples are taken, up to the largest that is.
    std::int64_t multiple = 1;
    const auto all_taken = [&](std::int64_t step) {
      return std::ranges::all_of(widths, [&](std::int64_t d) {
        return d % step != 0 || d > taken.back() || std::ranges::find(taken, d) != taken.end();
      });
    };
    while (!taken.empty() && multiple < 64 && !all_taken(multiple)) multiple *= 2;
    const std::string limit = m.max_head_dim ? fmt::format(" up to {}", *m.max_head_dim) : "";
    const std::string declared = fmt::format("multiples of {}{}", m.head_dim_multiple, limit);
    const bool more = std::ranges::any_of(taken, [&](std::int64_t d) { return !offered(d); });
    result_.answers.push_back({.question = "head dimensions",
                               .declared = declared,
                               .found = taken.empty()
                                            ? "none"
                                            : fmt::format("multiples of {} up to {}, of those tried{}", multiple,
                                                          taken.back(), wrong.empty() ? "" : "; not " + wrong),
                               .contradicts = !wrong.empty(),
                               .beyond = more});
    if (!taken.empty()) {
      result_.manifest.head_dim_multiple = multiple;
      if (taken.back() < std::end(widths)[-1]) result_.manifest.max_head_dim = taken.back();
    }
    Size s = size_;
    s.dv =
        2 * s.dk <= m.max_head_dim.value_or(2 * s.dk) ? 2 * s.dk : s.dk / 2 / m.head_dim_multiple * m.head_dim_multiple;
    if (s.dv == 0 || s.dv == s.dk) return;
    const std::string found = answer_at(s);
    const bool offered_too = !m.value_dim_equals_head_dim, does = found == "yes";
    note("dv other than dk", yes_or_no(offered_too), found, offered_too && !does && !found.starts_with("unsupported"),
         !offered_too && does);
    result_.manifest.value_dim_equals_head_dim = found != "yes";
  }

  void ask_claims() {
    for (const ProbedClaim& one : probe_claims(kernel_, result_.manifest, dtype_)) {
      const bool declared = kernel_.manifest().claims_to(one.claim), held = one.verdict == Outcome::held;
      const bool broken = one.verdict == Outcome::violated;
      note(fmt::format("claim {}", name_of(one.claim)), yes_or_no(declared), one.words, declared && broken,
           !declared && held);
      if (held || broken) set_member(result_.manifest.claims, one.claim, held);
    }
  }

  Kernel& kernel_;
  Stream stream_;
  DType dtype_ = DType::f32;
  Size size_;
  Probed result_;
};

}  // namespace

bool Probed::contradicted() const {
  return std::ranges::any_of(answers, &ProbeAnswer::contradicts);
}

Probed probe(Kernel& kernel, std::uint64_t seed) {
  return Prober(kernel, seed).run();
}

}  // namespace attest
