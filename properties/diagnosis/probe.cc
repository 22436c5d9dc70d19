#include "properties/diagnosis/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "core/bound/error_bound.h"
#include "core/oracle/oracle.h"
#include "core/problem/memory.h"
#include "core/support/errors.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/arithmetic/probe_denominator.h"
#include "properties/diagnosis/find_limits.h"
#include "properties/diagnosis/misreadings.h"
#include "properties/diagnosis/probe_claims.h"
#include "properties/diagnosis/probe_gradients.h"
#include "properties/diagnosis/probe_multihead.h"
#include "properties/diagnosis/probe_questions.h"
#include "properties/diagnosis/probe_sizes.h"
#include "properties/diagnosis/variants/probes/probe_alibi.h"
#include "properties/diagnosis/variants/probes/probe_chunks.h"
#include "properties/diagnosis/variants/probes/probe_descale.h"
#include "properties/diagnosis/variants/probes/probe_dropout.h"
#include "properties/diagnosis/variants/probes/probe_sequences.h"
#include "properties/diagnosis/variants/probes/probe_sinks.h"
#include "properties/diagnosis/variants/probes/probe_softcaps.h"
#include "properties/diagnosis/variants/probes/probe_windows.h"
#include "properties/language/answer.h"
#include "properties/road/redeclared_kernel.h"

namespace attest {
namespace {

/// A program behind standard input and output, by its id: "exec:…" or a family of adapters such as "pytorch:sdpa".
bool is_program(std::string_view id) {
  const std::string_view family = id.substr(0, id.find(':'));
  if (family.size() == id.size() || family.find_first_of("/.") != std::string_view::npos) return false;  // a path
  static constexpr std::string_view here[] = {"builtin", "core", "document", "fault", "control"};
  return std::ranges::find(here, family) == std::end(here);
}

class Prober : public ProbeQuestions {
 public:
  /// `stated`: the kernel under the manifest that it states.
  Prober(Kernel& kernel, Kernel& stated, std::uint64_t seed) : ProbeQuestions(kernel, seed), stated_(stated) {}

  Probed run(const std::vector<DType>& dtypes) {
    ask_scale();
    ask_boolean_mask();
    ask_additive_mask(MaskConvention::post_scale);
    ask_additive_mask(MaskConvention::pre_scale);
    ask_causal(Causal::top_left);
    ask_causal(Causal::bottom_right);
    ask_empty_row();
    ask_windows(*this);
    ask_chunks(*this);
    ask_sequences(*this);
    ask_sinks(*this);
    ask_softcaps(*this);
    ask_dropout(*this);
    ask_alibi(*this);
    ask_descale(*this);
    if (operation() == Operation::attention) {
      ask_groups();
      ask_lse();
      ask_gradients(*this);
    } else {
      ask_multihead(*this);
    }
    ask_strides();
    ask_lengths(*this);
    ask_head_dimensions(*this);
    if (operation() == Operation::attention) ask_denominators();
    ask_claims();
    for (const DType one : dtypes) ask_arithmetic(one);
    if (dtypes.empty()) ask_arithmetic(dtype());
    return std::move(result());
  }

 private:
  template <class Value>
  static void set_member(std::vector<Value>& values, const Value& value, bool member) {
    std::erase(values, value);
    if (member) values.push_back(value);
  }

  void ask_scale() {
    const Settled settled = settle([&] {
      Case c = plain(size());
      c.scale = inverse_root(size().dk) * 0.375;
      Case root = c, one = c;
      root.scale = inverse_root(size().dk);
      one.scale = 1;
      return Question{c, {{"any scale", c}, {"1/sqrt(dk) whatever is asked", root}, {"no scale at all", one}}};
    });
    const bool any = settled.is("any scale"), declared = manifest().any_scale;
    note("any scale", declared, settled, any);
    result().manifest.any_scale = any;
  }

  void ask_boolean_mask() {
    const Settled settled = settle([&] {
      Case c = plain(size());
      c[Slot::mask] = hiding(/*boolean=*/true, size());
      Case inverted = c, added = c;
      inverted[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return 1 - old; });
      added[Slot::mask] =
          mapped(Tensor(dtype(), c.mask().shape()), [&](std::int64_t e, double) { return c.mask()[e]; });
      return Question{c,
                      {{"true: may attend", c},
                       {"true: hidden", inverted},
                       {"added to the scores as 0 and 1", added},
                       {"ignored", without_mask(c)}}};
    });
    const bool does = settled.is("true: may attend"), declared = manifest().bool_masks;
    note("boolean mask", declared, settled, does);
    result().manifest.bool_masks = does;
  }

  void ask_additive_mask(MaskConvention convention) {
    const bool pre = convention == MaskConvention::pre_scale;
    const Settled settled = settle([&] {
      Case c = plain(size());
      c[Slot::mask] = hiding(/*boolean=*/false, size());
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
    const Manifest& m = manifest();
    const bool listed = std::ranges::find(m.mask_conventions, convention) != m.mask_conventions.end();
    const bool declared = m.additive_masks && listed;
    note(pre ? "additive mask before the scale" : "additive mask after the scale", declared, settled, does);
    Manifest& found = result().manifest;
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
    const Manifest& m = manifest();
    const bool declared = std::ranges::find(m.causal, causal) != m.causal.end();
    ProbeSize s = size();
    // As many queries as keys would not tell the alignments apart; fewer leave no row without a key.
    if (!is_self()) s.queries = std::max<std::int64_t>(1, std::min(s.queries, s.keys - 2));
    const Settled settled = settle([&] {
      Case c = plain(s);
      c.causal = causal;
      // Of as many queries as keys both alignments are one.
      if (is_self()) return Question{c, {{std::string(name_of(causal)), c}, {"ignored", without_mask(c)}}};
      Case top = c, bottom = c;
      top.causal = Causal::top_left;
      bottom.causal = Causal::bottom_right;
      return Question{c, {{"top-left", top}, {"bottom-right", bottom}, {"ignored", without_mask(c)}}};
    });
    const bool does = settled.is(name_of(causal));
    note(fmt::format("causal, {}", name_of(causal)), declared, settled, does);
    set_member(result().manifest.causal, causal, does);
  }

  /// What row 1 of the answer holds, which sees no key.
  FullyMaskedRow row_of(const Case& c, const Tensor& out, std::string& words) {
    const Shape shape = out.shape();
    const bool by_head = shape.rank() == 4;
    const std::int64_t M = shape[by_head ? 2 : 1], dv = shape[by_head ? 3 : 2];
    bool nan = true, zero = true;
    Tensor row(out.dtype(), by_head ? Shape{shape[0], shape[1], 1, dv} : Shape{shape[0], 1, dv});
    for (std::int64_t e = 0; e < row.elements(); ++e) {
      const double x = out[(e / dv * M + 1) * dv + e % dv];
      nan = nan && std::isnan(x);
      zero = zero && x == 0;
      row.set(e, x);
    }
    Case equal = with_queries(without_mask(c), {1});
    // Without b_q, so that all scores are equal.
    equal[Slot::q] = mapped(equal.q(), [](std::int64_t, double) { return 0.0; });
    equal[Slot::b_q] = Tensor();
    const FullyMaskedRow found = nan                ? FullyMaskedRow::nan
                                 : zero             ? FullyMaskedRow::zero
                                 : fits(equal, row) ? FullyMaskedRow::uniform
                                                    : FullyMaskedRow::undeclared;
    words = found == FullyMaskedRow::undeclared ? fmt::format("something else, such as {:.6g}", printed(row[0]))
                                                : std::string(name_of(found));
    return found;
  }

  void ask_empty_row() {
    const Manifest& m = result().manifest;
    if ((!m.bool_masks && !m.additive_masks) || size().queries < 2) return;
    FullyMaskedRow found = FullyMaskedRow::undeclared;
    std::string words;
    for (int round = 0; round < probe_rounds; ++round) {
      Case c = plain(size());
      // A row of zeros stays one in the output.
      c[Slot::b_o] = Tensor();
      const bool boolean = m.bool_masks && (round % 2 == 0 || !m.additive_masks);
      c[Slot::mask] = hiding(boolean, size());
      c.mask_convention = m.mask_conventions.front();
      for (std::int64_t j = 0; j < size().keys; ++j) c[Slot::mask].set(size().keys + j, boolean ? 0.0 : -infinity);
      const Reply reply = kernel().run(c);
      std::string now;
      FullyMaskedRow policy = FullyMaskedRow::undeclared;
      if (reply.status == CallStatus::rejected) {
        policy = FullyMaskedRow::error;
        now = name_of(policy);
      } else if (reply.status != CallStatus::ok) {
        now = ending_text(reply.status, reply.message);
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
    const FullyMaskedRow declared = manifest().fully_masked_row;
    const bool stated = declared != FullyMaskedRow::undeclared;
    result().answers.push_back({.question = "row without a key",
                                .declared = stated ? std::string(name_of(declared)) : "nothing",
                                .found = words,
                                .contradicts = stated && found != declared,
                                .beyond = !stated && found != FullyMaskedRow::undeclared});
    result().manifest.fully_masked_row = found;
  }

  void ask_groups() {
    const Manifest& m = manifest();
    ProbeSize s = size();
    s.kv_heads = 2;
    s.heads = 4 * m.heads_multiple;
    if (!m.group_sizes.empty()) s.heads = 2 * m.group_sizes.back();
    if (s.heads > m.max_heads.value_or(s.heads)) return;
    const std::int64_t group = s.heads / s.kv_heads;
    const Settled settled = settle([&] {
      const Case c = plain(s);
      return Question{
          c,
          {{"head h uses h / group", with_kv_heads(c, [&](std::int64_t h) { return h / group; })},
           {"head h uses h mod the key-value heads", with_kv_heads(c, [&](std::int64_t h) { return h % s.kv_heads; })},
           {"all use the first", with_kv_heads(c, [](std::int64_t) { return std::int64_t{0}; })}}};
    });
    const bool does = settled.is("head h uses h / group");
    note("grouped queries", m.grouped_query, settled, does);
    result().manifest.grouped_query = does;
  }

  void ask_lse() {
    std::set<std::string> found;
    for (int round = 0; round < probe_rounds; ++round) {
      const Case c = plain(size());
      const Reply reply = kernel().run(c, dtype(), /*want_lse=*/true);
      if (reply.status != CallStatus::ok || !reply.lse.present()) {
        found = {reply.status == CallStatus::ok ? "none" : ending_text(reply.status, reply.message)};
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
    const bool does = found == std::set<std::string>{"natural logarithm"}, declared = manifest().lse;
    note("log-sum-exp", yes_or_no(declared), fmt::format("{}", fmt::join(found, " or ")), declared && !does,
         !declared && does);
    result().manifest.lse = does;
  }

  void ask_strides() {
    const bool declared = manifest().strides;
    if (!declared && is_program(kernel().id())) {
      note("strides", "no", "cannot be told: a program is sent strides only where its manifest offers them", false,
           false);
      return;
    }
    const Settled settled = settle([&] {
      Case c = plain(size());
      const Case dense = c;
      set_layouts(c,
                  parse_layouts(operation() == Operation::attention
                                    ? "q=token-major k=every-other v=padded-rows out=padded-rows"
                                    : "q=padded-rows w_q=padded-rows w_v=every-other w_o=padded-rows out=padded-rows"));
      return Question{c, {{"as they are stated", dense}}};
    });
    const bool does = settled.is("as they are stated");
    note("strides", declared, settled, does);
    result().manifest.strides = does;
  }

  /// Of every dtype whose weights are rounded: where nothing is stated, 16-bit ones count as summed so.
  void ask_denominators() {
    for (const DType one : manifest().dtypes) {
      const Arithmetic& stated = manifest().arithmetic.usual_for(one);
      if (!(format_of(stated.weights).unit > format_of(stated.score_sums).unit)) continue;
      const Denominator found = denominator_of(kernel(), one);
      const bool declared = stated.weights_in_denominator, yes = found.sums == Denominator::Sums::rounded;
      const bool no = found.sums == Denominator::Sums::unrounded;
      // Declared and not so, the bound is wider than it need be.
      note(fmt::format("rounded weights in the denominator, {}", name_of(one)), yes_or_no(declared), found.words,
           !declared && yes, declared && no);
      if (yes || no) result().manifest.arithmetic.usual[one].weights_in_denominator = yes;
    }
  }

  void ask_arithmetic(DType of) {
    ProbedArithmetic found = probe_arithmetic(stated_, of);
    for (const ArithmeticFinding& one : found.findings) {
      const std::string suffix = fmt::format(", {}", name_of(of));
      const bool plain = of == dtype() || one.question.ends_with(suffix);
      std::string question = plain ? one.question : one.question + suffix;
      // The denominator has been asked about under what is declared.
      if (std::ranges::count(result().answers, question, &ProbeAnswer::question) > 0) continue;
      result().answers.push_back({.question = std::move(question),
                                  .declared = one.declared,
                                  .found = one.found,
                                  .evidence = one.evidence,
                                  .contradicts = one.contradicts});
    }
    Arithmetics& kept = result().manifest.arithmetic;
    // Paths of their own are arithmetics of some shapes, of which many were asked together.
    if (!kept.paths.contains(of) && !found.declared_nothing) kept.usual[of] = found.declare;
    result().arithmetics.push_back(std::move(found));
  }

  void ask_claims() {
    for (const ProbedClaim& one : probe_claims(kernel(), result().manifest, dtype())) {
      const bool declared = manifest().claims_to(one.claim), held = one.verdict == Outcome::held;
      const bool broken = one.verdict == Outcome::violated;
      note(fmt::format("claim {}", name_of(one.claim)), yes_or_no(declared), one.words, declared && broken,
           !declared && held);
      if (held || broken) set_member(result().manifest.claims, one.claim, held);
    }
  }

  Kernel& stated_;
};

}  // namespace

bool Probed::contradicted() const {
  return std::ranges::any_of(answers, &ProbeAnswer::contradicts);
}

Probed probe(Kernel& kernel, std::uint64_t seed, const std::vector<DType>& dtypes) {
  for (const DType one : dtypes)
    if (!kernel.manifest().takes(one)) throw UsageError(fmt::format("{} does not list {}", kernel.id(), name_of(one)));
  const FoundLimits found = find_limits(kernel);
  RedeclaredKernel limited(kernel, found.manifest);
  const auto ask = [&](Kernel& under) {
    Prober prober(under, limited, seed);
    for (const FoundLimit& limit : found.limits)
      prober.note("limit", "none", fmt::format("{}: {}", limit.key, limit.words), false, false);
    if (!found.unexplained.empty()) prober.note("limit", "none", found.unexplained, false, false);
    return prober.run(dtypes);
  };
  try {
    return ask(limited);
  } catch (const UsageError&) {
    // Right by no more than it declares, it may be so by what it does: sums in f16 of which the manifest says nothing.
    Manifest manifest = limited.manifest();
    const DType dtype = asked_dtype(manifest);
    const ProbedArithmetic does = probe_arithmetic(limited, dtype);
    Arithmetic& usual = manifest.arithmetic.usual.at(dtype);
    if (does.declared_nothing || !does.readable || does.declare == usual) throw;
    usual = does.declare;
    RedeclaredKernel under(limited, std::move(manifest));
    return ask(under);
  }
}

}  // namespace attest
