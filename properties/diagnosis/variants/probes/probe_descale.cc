#include "properties/diagnosis/variants/probes/probe_descale.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel/limits.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/variants/descale_misreadings.h"

namespace attest {
namespace {

constexpr std::string_view as_meant = "as it is meant";

class DescaleProber {
 public:
  explicit DescaleProber(ProbeQuestions& probe) : probe_(probe) {}

  void run() {
    const std::pair<Slot, bool VariantTerms::*> tensors[] = {
        {Slot::q, &VariantTerms::of_q}, {Slot::k, &VariantTerms::of_k}, {Slot::v, &VariantTerms::of_v}};
    for (const auto& [tensor, taken] : tensors)
      if (terms().*taken) right_.push_back(tensor);
    if (!is_right("factors", {.tensors = right_})) {
      right_.clear();
      for (const auto& [tensor, taken] : tensors) {
        if (!(terms().*taken)) continue;
        terms().*taken = is_right(fmt::format("factors of {} alone", name_of(tensor)), {.tensors = {tensor}});
        if (terms().*taken) right_.push_back(tensor);
      }
    }
    if (right_.empty()) {
      found().variants.erase(std::string(descale_variant.name));
      state_terms_in_arithmetic(found());
      return;
    }
    if (terms().per_head)
      terms().per_head = is_right("factors of every head's own", {.tensors = right_, .heads = true});
    if (terms().per_batch && probe_.size().batch > 1)
      terms().per_batch = is_right("factors of every batch entry's own", {.tensors = right_, .entries = true});
    ask_blocks();
    beside_others();
  }

 private:
  /// Which factors a problem has.
  struct Form {
    std::vector<Slot> tensors;
    bool heads = false, entries = false;     ///< of each its own
    std::int64_t q_block = 0, kv_block = 0;  ///< so many rows have one together; 0: all
  };

  [[nodiscard]] Manifest& found() { return probe_.result().manifest; }
  [[nodiscard]] VariantTerms& terms() { return found().variants.find(descale_variant.name)->second; }

  /// Of as many heads to a key-value head as there can be. No two factors beside each other are alike, and none is a
  /// power of 2 but beside f64.
  Case problem(const Form& form) {
    constexpr std::array sizes{0.7, 1.6, 0.45, 2.2, 1.2, 0.55, 1.8};
    const Manifest& m = probe_.manifest();
    ProbeSize s = probe_.size();
    if (allows_heads(m, 4, 2)) s.heads = 4, s.kv_heads = 2;
    // More than two blocks.
    s.queries = allowed_queries(m).nearest(std::max(s.queries, 2 * form.q_block + 1));
    s.keys = allowed_keys(m).nearest(std::max(s.keys, 2 * form.kv_block + 1));
    if (m.same_lengths) s.queries = s.keys = allowed_tokens(m).nearest(std::max(s.queries, s.keys));
    Case c = probe_.plain(s);
    for (const Slot tensor : form.tensors) {
      const Shape& shape = c[tensor].shape();
      const std::int64_t block = tensor == Slot::q ? form.q_block : form.kv_block;
      const std::int64_t blocks = block == 0 ? 1 : (shape[2] + block - 1) / block;
      Tensor& factors = c[descale_of(tensor)];
      const double whole = factors.present() ? factors[0] : 1;
      const auto place = static_cast<std::int64_t>(tensor);  // no tensor has the factors of another
      factors = mapped(Tensor(DType::f32, {form.entries ? shape[0] : 1, form.heads ? shape[1] : 1, blocks}),
                       [&](std::int64_t e, double) {
                         const double size = sizes[static_cast<std::size_t>(3 * e + 2 * round_ + place) % sizes.size()];
                         return whole * (c.dtype() == DType::f64 ? std::exp2(std::round(std::log2(size))) : size);
                       });
    }
    c.q_descale_block = form.q_block, c.kv_descale_block = form.kv_block;
    settle_blocks(c);
    ++round_;
    return c;
  }

  /// Each other problem once, and none that has the answer of what is meant.
  Question question_of(const Case& c, std::map<std::string, std::string>& remedies) const {
    Question one{c, {{std::string(as_meant), c}}};
    for (MisreadDescale& reading : misread_descale(c)) {
      std::string words = "as if " + reading.words;
      if (const std::size_t at = words.find('#'); at != std::string::npos)
        words.replace(at, 1, std::to_string(reading.size));
      const auto same = [&](const Reading& other) {
        return static_cast<const Problem&>(other.problem) == static_cast<const Problem&>(reading.problem);
      };
      if (std::ranges::any_of(one.readings, same) || probe_.have_one_answer(c, reading.problem)) continue;
      remedies.insert_or_assign(words, std::move(reading.remedy));
      one.readings.push_back({std::move(words), std::move(reading.problem)});
    }
    return one;
  }

  /// Whether it is, or cannot be asked.
  bool is_right(std::string question, const Form& form, const std::function<void(Case&)>& add = [](Case&) {}) {
    const auto made = [&] {
      Case c = problem(form);
      add(c);
      return c;
    };
    if (const std::string why = why_unsupported(probe_.manifest(), made()); !why.empty()) {
      probe_.note(std::move(question), "yes", "not asked: " + why, false, false);
      return true;
    }
    std::map<std::string, std::string> remedies;
    const Settled settled = probe_.settle([&] { return question_of(made(), remedies); });
    const bool does = settled.is(as_meant), is_one = !does && settled.readings.size() == 1;
    probe_.result().answers.push_back({.question = std::move(question),
                                       .declared = "yes",
                                       .found = settled.text(),
                                       .evidence = is_one ? remedies[settled.readings.front()] : std::string(),
                                       .contradicts = !does && settled.status != CallStatus::unsupported});
    return does;
  }

  void ask_blocks() {
    const auto ask = [&](bool of_rows, std::int64_t block) {
      Form form{.tensors = right_};
      std::erase_if(form.tensors, [&](Slot tensor) { return (tensor == Slot::q) != of_rows; });
      if (form.tensors.empty()) return terms().any_blocks;
      (of_rows ? form.q_block : form.kv_block) = block;
      return is_right(fmt::format("factors of blocks of {} {}", block, of_rows ? "rows of q" : "keys"), form);
    };
    if (terms().any_blocks) {
      // An odd number, and one of a tile.
      for (const std::int64_t block : {3, 16})
        for (const bool of_rows : {true, false}) terms().any_blocks = ask(of_rows, block) && terms().any_blocks;
      return;
    }
    std::erase_if(terms().q_blocks, [&](std::int64_t block) { return !ask(true, block); });
    std::erase_if(terms().kv_blocks, [&](std::int64_t block) { return !ask(false, block); });
  }

  /// What these are, their own questions found.
  void beside_others() {
    const auto beside = [&](const std::string& question, Feature feature, const std::function<void(Case&)>& add) {
      std::vector<Feature>& excluded = terms().excluded;
      if (std::ranges::count(excluded, feature) > 0) return;
      if (!is_right("factors beside " + question, {.tensors = right_}, add)) excluded.push_back(feature);
    };
    if (found().additive_masks)
      beside("an additive mask", Feature::additive_mask, [&](Case& c) {
        ProbeSize s = probe_.size();
        s.queries = queries_of(c), s.keys = keys_of(c);
        c[Slot::mask] = probe_.hiding(/*boolean=*/false, s);
        c.mask_convention = found().mask_conventions.front();
      });
    // A cap of a few times what products are.
    if (found().variants.contains(softcap_variant.name))
      beside("a softcap", Feature::softcap, [](Case& c) { c.softcap = 1.25; });
  }

  ProbeQuestions& probe_;
  std::vector<Slot> right_;  ///< tensors whose factors are heeded
  std::int64_t round_ = 0;
};

}  // namespace

void ask_descale(ProbeQuestions& probe) {
  if (probe.operation() != Operation::attention) return;
  if (!probe.manifest().variants.contains(descale_variant.name))
    return probe.note("factors", "no", "not asked: the manifest's \"variants\" does not list them", false, false);
  DescaleProber(probe).run();
}

}  // namespace attest
