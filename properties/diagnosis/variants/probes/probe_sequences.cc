#include "properties/diagnosis/variants/probes/probe_sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/sequences.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/sequences.h"
#include "properties/diagnosis/variants/sequence_misreadings.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

constexpr std::string_view as_meant = "as they are meant";

/// Whose lengths a problem has, padding on the left, or a cache; none: it is packed.
enum class Lengths { none, of_queries, of_keys, left_pad, paged, cache_index, append };

class SequenceProber {
 public:
  explicit SequenceProber(ProbeQuestions& probe) : probe_(probe) {}

  void ask_lengths() {
    const VariantTerms terms = probe_.manifest().variants.find(lengths_variant.name)->second;
    VariantTerms& kept = probe_.result().manifest.variants.find(lengths_variant.name)->second;
    kept.keys = terms.keys && ask(Lengths::of_keys, Causal::none, kept);
    kept.queries = terms.queries && ask(Lengths::of_queries, Causal::none, kept);
    if (kept.keys || kept.queries)
      for (const Causal causal : probe_.manifest().causal)
        ask(kept.keys ? Lengths::of_keys : Lengths::of_queries, causal, kept);
    if (kept.keys) ask_empty();
    if (!kept.keys && !kept.queries) drop(lengths_variant);
  }

  void ask_variant(const Variant& variant, Lengths lengths) {
    if (!probe_.manifest().variants.contains(variant.name)) return;
    VariantTerms& kept = probe_.result().manifest.variants.find(variant.name)->second;
    if (!ask(lengths, Causal::none, kept)) return drop(variant);
    for (const Causal causal : probe_.manifest().causal) ask(lengths, causal, kept);
  }

 private:
  void drop(const Variant& variant) {
    auto& variants = probe_.result().manifest.variants;
    variants.erase(variants.find(variant.name));
  }

  /// Three sequences, of queries or keys from `least` on, other ones each round.
  Case problem(Lengths lengths, Causal causal) {
    const Manifest& m = probe_.manifest();
    ProbeSize s = probe_.size();
    s.batch = 3;
    if (!m.same_lengths) s.keys = allowed_keys(m).nearest(std::max<std::int64_t>(s.keys, 9));
    Case c = probe_.plain(s);
    const bool queries = lengths == Lengths::of_queries;
    const std::int64_t most = queries ? s.queries : s.keys;
    // Rows without a key are another question.
    const std::int64_t least = std::min(most, queries ? 1 : causal == Causal::bottom_right ? s.queries : 2);
    Tensor all(DType::i32, {s.batch});
    for (std::int64_t b = 0; b < s.batch; ++b)
      all.set(b, static_cast<double>(least + (round_ + 2 * b) % (most - least + 1)));
    if (lengths == Lengths::left_pad) {
      for (std::int64_t b = 0; b < s.batch; ++b) all.set(b, static_cast<double>(most) - all[b]);
      c[Slot::left_pad] = std::move(all);
    } else {
      c[queries ? Slot::q_lengths : Slot::kv_lengths] = std::move(all);
    }
    if (lengths == Lengths::paged) c = paged(c);
    if (lengths == Lengths::append) {
      const auto most_new = probe_.manifest().variants.find(append_variant.name)->second.max_tokens;
      c.append = std::min({most_append(c), std::int64_t{2}, most_new.value_or(2)});
    }
    if (lengths == Lengths::cache_index) {
      c[Slot::kv_lengths] = Tensor();
      c = in_cache_rows(c, 2, static_cast<std::uint64_t>(round_));
    }
    ++round_;
    if (lengths == Lengths::none) c = packed(c);
    c.causal = causal;
    return c;
  }

  /// In pages of the smallest size that the kernel takes and that some sequence leaves slots of.
  [[nodiscard]] Case paged(const Case& c) const {
    const VariantTerms& terms = probe_.manifest().variants.find(paged_variant.name)->second;
    const std::int64_t size = terms.page_sizes.empty() ? 2 : terms.page_sizes.front();
    return in_pages(c, size, 2, static_cast<std::uint64_t>(round_), terms.two_tables && round_ % 2 == 1);
  }

  static std::string question_of(Lengths lengths, Causal causal) {
    const std::string_view what = lengths == Lengths::none          ? "packed sequences"
                                  : lengths == Lengths::left_pad    ? "padding on the left"
                                  : lengths == Lengths::paged       ? "keys and values in pages"
                                  : lengths == Lengths::cache_index ? "rows of a cache"
                                  : lengths == Lengths::append      ? "keys that a call appends"
                                  : lengths == Lengths::of_queries  ? "lengths of queries"
                                                                    : "lengths of keys";
    return causal == Causal::none ? std::string(what) : fmt::format("{}, causal {}", what, name_of(causal));
  }

  /// Whether they are taken as they are meant. A causal form that is not becomes one that `terms` exclude.
  bool ask(Lengths lengths, Causal causal, VariantTerms& terms) {
    const std::string question = question_of(lengths, causal);
    if (const std::string why = why_unsupported(probe_.manifest(), problem(lengths, causal)); !why.empty()) {
      // What a causal form requires or excludes beside sequences is the manifest's to say.
      if (causal == Causal::none) probe_.note(question, "yes", "not asked: " + why, false, false);
      return true;
    }
    Settled settled = probe_.settle([&] {
      const Case c = problem(lengths, causal);
      Question asked{c, {{std::string(as_meant), c}}};
      for (MisreadSequences& reading : misread_sequences(c))
        if (reading.problem && !(*reading.problem == c))
          asked.readings.push_back({"as if " + std::move(reading.words), *std::move(reading.problem)});
      return asked;
    });
    const bool does = std::ranges::count(settled.readings, as_meant) > 0;
    // Keys that no row sees, as of a causal form with few queries, may be there or not.
    if (does && (lengths == Lengths::of_queries || causal != Causal::none)) settled.readings = {std::string(as_meant)};
    probe_.note(question, "yes", settled.text(), !does && settled.status != CallStatus::unsupported, false);
    if (!does && causal != Causal::none)
      terms.excluded.push_back(causal == Causal::top_left ? Feature::top_left : Feature::bottom_right);
    return does;
  }

  /// Of a sequence without a key: NaN, 0 or other numbers, where the manifest says which of them a row without one is.
  void ask_empty() {
    Case c = problem(Lengths::of_keys, Causal::none);
    c[Slot::kv_lengths].set(1, 0);
    if (!why_unsupported(probe_.manifest(), c).empty()) return;
    const FullyMaskedRow declared = probe_.manifest().fully_masked_row;
    const Reply reply = probe_.kernel().run(c);
    std::string found;
    if (reply.status == CallStatus::rejected) {
      found = name_of(FullyMaskedRow::error);
    } else if (reply.status != CallStatus::ok) {
      found = ending_text(reply.status, reply.message);
    } else {
      const Tensor rows = rows_of_sequence(reply.out, c, 1);
      bool nan = true, zero = true;
      for (std::int64_t e = 0; e < rows.elements(); ++e) nan = nan && std::isnan(rows[e]), zero = zero && rows[e] == 0;
      found = nan ? name_of(FullyMaskedRow::nan) : zero ? name_of(FullyMaskedRow::zero) : "other numbers";
    }
    const bool stated =
        declared == FullyMaskedRow::nan || declared == FullyMaskedRow::zero || declared == FullyMaskedRow::error;
    probe_.note("a sequence without a key", stated ? std::string(name_of(declared)) : "nothing", found,
                stated && found != name_of(declared) && reply.status != CallStatus::unsupported, false);
  }

  ProbeQuestions& probe_;
  std::int64_t round_ = 0;
};

}  // namespace

void ask_sequences(ProbeQuestions& probe) {
  if (probe.operation() != Operation::attention) return;
  const auto& listed = probe.manifest().variants;
  const std::vector<Variant> all = variants();
  if (std::ranges::none_of(all, [&](const Variant& variant) {
        return (variant.is_about_sequences || variant.is_about_memory) && listed.contains(variant.name);
      })) {
    probe.note("lengths of sequences", "no",
               "not asked: the manifest's \"variants\" lists no lengths, packed sequences or caches", false, false);
    return;
  }
  SequenceProber prober(probe);
  if (listed.contains(lengths_variant.name)) prober.ask_lengths();
  prober.ask_variant(left_pad_variant, Lengths::left_pad);
  prober.ask_variant(packed_variant, Lengths::none);
  prober.ask_variant(paged_variant, Lengths::paged);
  prober.ask_variant(append_variant, Lengths::append);
  prober.ask_variant(cache_index_variant, Lengths::cache_index);
}

}  // namespace attest
