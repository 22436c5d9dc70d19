#include "properties/diagnosis/find_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/kernel/forwarding_kernel.h"
#include "core/kernel/limits.h"
#include "core/problem/selection.h"
#include "properties/arrangement/arrange.h"
#include "properties/catalogue/property.h"
#include "properties/road/case_budget.h"
#include "properties/road/fit_form.h"

namespace attest {
namespace {

constexpr std::int64_t lengths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 65, 80, 96, 100, 128, 192, 256, 320};
constexpr std::int64_t widths[] = {1, 2, 4, 8, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 256};
constexpr std::int64_t sizes_of_groups[] = {1, 2, 3, 4, 6, 8};
constexpr std::int64_t numbers_of_heads[] = {1, 2, 3, 4, 5, 6, 8, 12, 16};

struct Question {
  std::int64_t queries = 64, keys = 64, dk = 64, dv = 64, heads = 2, kv_heads = 2;
  Causal causal = Causal::none;
  std::optional<DType> mask{};  ///< boolean, or of numbers in q's format
};

/// What was asked along an axis, ascending, and which of it was answered.
struct Answers {
  std::vector<std::int64_t> asked, taken;
  [[nodiscard]] bool refuses() const { return taken.size() < asked.size(); }
  [[nodiscard]] bool is_taken(std::int64_t extent) const { return std::ranges::binary_search(taken, extent); }
};

/// Multiples from a least to a most, of what was asked.
struct Rule {
  std::int64_t multiple = 1, least = 0;
  std::optional<std::int64_t> most{};
};

/// The rule that the answers follow; nothing where they follow none.
std::optional<Rule> rule_of(const Answers& answers) {
  if (answers.taken.empty()) return std::nullopt;
  Rule rule{.multiple = 0};
  for (const std::int64_t extent : answers.taken) rule.multiple = std::gcd(rule.multiple, extent);
  if (rule.multiple == 0) return std::nullopt;  // nothing but 0 was answered
  const std::int64_t first = answers.taken.front(), last = answers.taken.back();
  for (const std::int64_t extent : answers.asked) {
    if (extent % rule.multiple != 0) continue;
    if (extent < first) {
      rule.least = first;
    } else if (extent > last) {
      rule.most = last;
    } else if (!answers.is_taken(extent)) {
      return std::nullopt;
    }
  }
  return rule;
}

std::string listed(std::span<const std::int64_t> extents) {
  return fmt::format("{}", fmt::join(extents, ", "));
}

/// "it answered 64, 128 queries and refused 1, 2, 3".
std::string numbers_of(const Answers& answers, std::string_view what) {
  std::vector<std::int64_t> refused;
  std::ranges::set_difference(answers.asked, answers.taken, std::back_inserter(refused));
  return fmt::format("answered {} {} and refused {}", answers.taken.empty() ? "no number of" : listed(answers.taken),
                     what, listed(refused));
}

std::string in_words(const Rule& rule, std::string_view what, const Answers& answers) {
  std::vector<std::string> parts;
  if (rule.multiple > 1) parts.push_back(fmt::format("that is no multiple of {}", rule.multiple));
  if (rule.least > 0) parts.push_back(fmt::format("below {}", rule.least));
  if (rule.most) parts.push_back(fmt::format("above {}", *rule.most));
  return fmt::format("it refused every number of {} {}: it {}", what, fmt::join(parts, " or "),
                     numbers_of(answers, what));
}

class Finder {
 public:
  explicit Finder(Kernel& kernel) : kernel_(kernel), found_{kernel.manifest(), {}, {}} {
    const auto f32 = std::ranges::find(m().dtypes, DType::f32);
    dtype_ = f32 == m().dtypes.end() ? m().dtypes.front() : *f32;
  }

  FoundLimits run() {
    if (!m().attention || !is_anything_refused() || ended_ || !find_base()) return std::move(found_);
    ask_widths();
    ask_heads();
    ask_lengths();
    ask_causal_forms();
    ask_kinds_of_masks();
    ask_masks();
    return std::move(found_);
  }

 private:
  Manifest& m() { return found_.manifest; }

  [[nodiscard]] Case case_of(const Question& q) const {
    const auto tensor = [&](const Shape& shape, std::int64_t step) {
      return mapped(Tensor(dtype_, shape),
                    [&](std::int64_t e, double) { return static_cast<double>(e * step % 17 - 8) / 8; });
    };
    Case c;
    c[Slot::q] = tensor({1, q.heads, q.queries, q.dk}, 3);
    c[Slot::k] = tensor({1, q.kv_heads, q.keys, q.dk}, 5);
    c[Slot::v] = tensor({1, q.kv_heads, q.keys, q.dv}, 7);
    c.scale = inverse_root(q.dk);
    c.causal = q.causal;
    if (q.mask) {
      const double shows = *q.mask == DType::boolean ? 1.0 : 0.0;
      c[Slot::mask] = mapped(Tensor(*q.mask, {1, 1, q.queries, q.keys}), [&](std::int64_t, double) { return shows; });
    }
    return in_kv_dtypes(std::move(c), found_.manifest);
  }

  /// Whether the kernel answers; nothing where its manifest does not let it be asked, and after an end.
  std::optional<bool> answers(const Case& c) {
    if (ended_ || !why_unsupported(m(), c).empty()) return std::nullopt;
    if (!why_over_budget(c.operation, Extents(), extents_of(c)).empty()) return std::nullopt;
    const Reply reply = kernel_.run(c);
    if (reply.status == CallStatus::ok) return true;
    ended_ = reply.status != CallStatus::unsupported;
    return ended_ ? std::nullopt : std::optional(false);
  }
  std::optional<bool> answers(const Question& q) { return answers(case_of(q)); }

  /// A few shapes of which a kernel without limits takes every one.
  bool is_anything_refused() {
    const std::int64_t kv_heads = m().grouped_query ? 2 : 6;
    for (const Question& q : {Question{.queries = 5, .keys = 7, .dk = 4, .dv = 6}, Question{.queries = 1, .keys = 1},
                              Question{.queries = 9, .keys = 5, .dk = 8, .dv = 8, .heads = 6, .kv_heads = kv_heads},
                              Question{.queries = 64, .keys = 64, .dk = 256, .dv = 256}})
      if (answers(project(case_of(q), m())) == false) return true;
    for (const DType mask : mask_dtypes())
      if (answers(project(case_of({.queries = 5, .keys = 7, .dk = 4, .dv = 6, .mask = mask}), m())) == false)
        return true;
    return false;
  }

  /// Of the kinds of masks that the manifest lists.
  std::vector<DType> mask_dtypes() {
    std::vector<DType> kinds;
    if (m().additive_masks) kinds.push_back(dtype_);
    if (m().bool_masks) kinds.push_back(DType::boolean);
    return kinds;
  }

  /// A problem that is answered, from which one axis is changed at a time.
  bool find_base() {
    constexpr std::pair<std::int64_t, std::int64_t> tokens[] = {{64, 64},   {1, 64},  {128, 128}, {64, 128},
                                                                {256, 256}, {16, 16}, {1, 128}};
    std::vector<Causal> forms{Causal::none};
    forms.insert(forms.end(), m().causal.begin(), m().causal.end());
    for (const auto& [queries, keys] : tokens)
      for (const std::int64_t d : {64, 128, 32, 16, 80, 96, 8})
        for (const Causal form : forms)
          for (const std::int64_t group : {1, 4, 8}) {
            Question q{.queries = queries, .keys = keys, .dk = d, .dv = d, .heads = 2 * group, .causal = form};
            if (!m().grouped_query) q.kv_heads = q.heads;
            if (answers(q) != true) continue;
            base_ = q;
            return true;
          }
    if (!ended_)
      found_.unexplained =
          "it refused every shape that was tried: 1 to 256 queries, 16 to 256 keys and dk from 8 to 128";
    return false;
  }

  Answers along(std::span<const std::int64_t> extents, auto set) {
    Answers all;
    for (const std::int64_t extent : extents) {
      Question q = base_;
      set(q, extent);
      const std::optional<bool> answer = answers(q);
      if (!answer) continue;
      all.asked.push_back(extent);
      if (*answer) all.taken.push_back(extent);
    }
    return ended_ ? Answers() : all;
  }

  void keep(std::string key, std::string words) { found_.limits.push_back({std::move(key), std::move(words)}); }
  void keep_limit(std::string_view key, const auto& value, std::string words) {
    keep(fmt::format("\"limits\": {{\"{}\": {}}}", key, value), std::move(words));
  }
  void cannot_explain(const Answers& answers, std::string_view what) {
    found_.unexplained = fmt::format("it {}, which no limit explains", numbers_of(answers, what));
  }

  void ask_widths() {
    if (!m().head_dims.empty() || m().max_head_dim || m().head_dim_multiple > 1) return;
    const Answers both = along(widths, [](Question& q, std::int64_t d) { q.dk = q.dv = d; });
    if (both.refuses()) {
      const std::optional<Rule> rule = rule_of(both);
      // A few widths are a list: that they are multiples of something is chance.
      if (rule && both.taken.size() > 3) {
        const std::string words = in_words(*rule, "columns (dk and dv)", both);
        m().head_dim_multiple = rule->multiple;
        if (rule->multiple > 1) keep_limit("head_dim_multiple", rule->multiple, words);
        m().max_head_dim = rule->most;
        if (rule->most) keep_limit("max_head_dim", *rule->most, words);
      } else if (!both.taken.empty()) {
        m().head_dims = both.taken;
        keep_limit("head_dims", fmt::format("[{}]", listed(both.taken)),
                   fmt::format("it {}", numbers_of(both, "columns (dk and dv)")));
      }
    }
    if (both.taken.size() < 2 || m().value_dim_equals_head_dim || !m().value_dims.empty()) return;
    const std::int64_t narrow = both.taken[both.taken.size() - 2], wide = both.taken.back();
    Question q = base_;
    q.dk = narrow, q.dv = wide;
    const std::optional<bool> wider = answers(q);
    std::swap(q.dk, q.dv);
    if (wider != false || answers(q) != false) return;
    m().value_dim_equals_head_dim = true;
    keep_limit("value_dim", "\"head_dim\"", fmt::format("it refused dv other than dk, as {} and {}", narrow, wide));
  }

  void ask_heads() {
    if (m().heads_multiple > 1 || m().max_heads || !m().group_sizes.empty()) return;
    if (m().grouped_query) {
      const Answers groups = along(sizes_of_groups, [](Question& q, std::int64_t size) {
        q.kv_heads = 2;
        q.heads = 2 * size;
      });
      if (!groups.refuses() || groups.taken.empty()) return;
      m().group_sizes = groups.taken;
      keep_limit("group_sizes", fmt::format("[{}]", listed(groups.taken)),
                 fmt::format("it {}", numbers_of(groups, "heads to a key-value head")));
      return;
    }
    const Answers heads = along(numbers_of_heads, [](Question& q, std::int64_t n) { q.heads = q.kv_heads = n; });
    if (!heads.refuses()) return;
    const std::optional<Rule> rule = rule_of(heads);
    if (!rule || rule->least > 0) return cannot_explain(heads, "heads");
    const std::string words = in_words(*rule, "heads", heads);
    m().heads_multiple = rule->multiple;
    if (rule->multiple > 1) keep_limit("heads_multiple", rule->multiple, words);
    m().max_heads = rule->most;
    if (rule->most) keep_limit("max_heads", *rule->most, words);
  }

  [[nodiscard]] bool lengths_are_open() {
    return m().queries_multiple == 1 && m().keys_multiple == 1 && m().min_queries == 0 && m().min_keys == 0 &&
           !m().max_queries && !m().max_keys && !m().same_lengths;
  }

  void ask_lengths() {
    if (!lengths_are_open()) return;
    const Answers queries = along(lengths, [](Question& q, std::int64_t n) { q.queries = n; });
    const Answers keys = along(lengths, [](Question& q, std::int64_t n) { q.keys = n; });
    const bool alone = queries.taken == std::vector{base_.queries} && keys.taken == std::vector{base_.keys};
    if (alone && base_.queries == base_.keys) {
      const Answers tokens = along(lengths, [](Question& q, std::int64_t n) { q.queries = q.keys = n; });
      if (tokens.taken.size() > 1) {
        m().same_lengths = true;
        keep_limit(
            "same_lengths", true,
            fmt::format("it refused M other than N: with N = {} it {}", base_.keys, numbers_of(queries, "queries")));
        follow(tokens, "queries", m().queries_multiple, m().min_queries, m().max_queries);
        follow(tokens, "keys", m().keys_multiple, m().min_keys, m().max_keys);
        return;
      }
    }
    follow(queries, "queries", m().queries_multiple, m().min_queries, m().max_queries);
    follow(keys, "keys", m().keys_multiple, m().min_keys, m().max_keys);
  }

  void follow(const Answers& answers, std::string_view what, std::int64_t& multiple, std::int64_t& least,
              std::optional<std::int64_t>& most) {
    if (!answers.refuses()) return;
    const std::optional<Rule> rule = rule_of(answers);
    if (!rule) return cannot_explain(answers, what);
    const std::string words = in_words(*rule, what, answers);
    multiple = rule->multiple, least = rule->least, most = rule->most;
    if (multiple > 1) keep_limit(fmt::format("{}_multiple", what), multiple, words);
    if (least > 0) keep_limit(fmt::format("min_{}", what), least, words);
    if (most) keep_limit(fmt::format("max_{}", what), *most, words);
  }

  /// Lengths within the limits, M < N and M > N.
  [[nodiscard]] std::optional<std::pair<Question, Question>> unequal() {
    const auto small = allowed_tokens(m()).from(17);
    const auto large = small ? allowed_tokens(m()).from(*small + 1) : std::nullopt;
    if (!large) return std::nullopt;
    Question fewer = base_, more = base_;
    fewer.queries = more.keys = *small;
    fewer.keys = more.queries = *large;
    return std::pair{fewer, more};
  }

  void exclude(std::vector<Feature> together, std::string words) {
    std::vector<std::string> quoted;
    quoted.reserve(together.size());
    for (const Feature feature : together) quoted.push_back(fmt::format("\"{}\"", name_of(feature)));
    keep(fmt::format("\"excludes\": [[{}]]", fmt::join(quoted, ", ")), std::move(words));
    m().excluded.push_back(std::move(together));
  }

  void ask_causal_forms() {
    if (!m().required.empty() || !m().excluded.empty() || m().causal.empty()) return;
    if (base_.causal != Causal::none) {
      Question plain = base_;
      plain.causal = Causal::none;
      if (answers(plain) != false) return;
      m().required = {Feature::causal};
      keep("\"requires\": [\"causal\"]",
           fmt::format("it refused what it answers {} without a causal form", name_of(base_.causal)));
      return;
    }
    const auto both = unequal();
    if (!both || m().same_lengths) return;
    for (const Causal form : m().causal) {
      const auto with_form = [&](Question q) {
        q.causal = form;
        return answers(q);
      };
      Question square = both->first;
      square.keys = square.queries;
      if (with_form(square) != true || with_form(both->second) != false) continue;
      const Feature word = form == Causal::top_left ? Feature::top_left : Feature::bottom_right;
      const bool every = with_form(both->first) == false;
      exclude({word, every ? Feature::unequal_lengths : Feature::fewer_keys},
              fmt::format("it refused {} with {} queries and {} keys{}, and answered {} of each", name_of(form),
                          both->second.queries, both->second.keys, every ? ", and the other way round" : "",
                          square.queries));
    }
  }

  /// Which kinds there are, beside the form of the base: a mask that no form goes with is the next question's.
  void ask_kinds_of_masks() {
    std::vector<std::string_view> taken, refused;
    const auto ask = [&](bool& listed, DType dtype, std::string_view word) {
      if (!listed) return;
      Question masked = base_;
      masked.mask = dtype;
      const std::optional<bool> answer = answers(masked);
      if (!answer) return;
      (*answer ? taken : refused).push_back(word);
      listed = *answer;
    };
    // Who states further formats of additive masks has stated that there are some.
    if (m().mask_dtypes.empty()) ask(m().additive_masks, dtype_, "additive");
    ask(m().bool_masks, DType::boolean, "bool");
    if (refused.empty()) return;
    const std::string quoted = taken.empty() ? "" : fmt::format("\"{}\"", taken.front());
    keep(fmt::format("\"masks\": [{}]", quoted),
         fmt::format("it refused a mask of the kind {}, and answered the same problem without one",
                     fmt::join(refused, " and of the kind ")));
  }

  void ask_masks() {
    if (m().causal.empty() || (!m().bool_masks && !m().additive_masks)) return;
    Question masked = base_, causal = base_;
    masked.mask = mask_dtypes().front();
    causal.causal = m().causal.front();
    Question both = causal;
    both.mask = masked.mask;
    if (answers(causal) != true || answers(both) != false) return;
    if (m().required.empty() && answers(masked) != true) return;
    exclude({Feature::mask, Feature::causal},
            "it refused a mask with a causal form, and answered one without the other");
  }

  Kernel& kernel_;
  FoundLimits found_;
  DType dtype_;
  Question base_;
  bool ended_ = false;
};

class LimitedKernel final : public ForwardingKernel {
 public:
  LimitedKernel(std::unique_ptr<Kernel> kernel, Manifest manifest)
      : ForwardingKernel(std::move(kernel)), manifest_(std::move(manifest)) {}
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<LimitedKernel>(ForwardingKernel::clone(), manifest_);
  }

 private:
  Manifest manifest_;
};

}  // namespace

FoundLimits find_limits(Kernel& kernel) {
  return Finder(kernel).run();
}

Manifest with_limits_of(Manifest declared, const Manifest& found) {
  const Manifest unstated;
  const auto take = [&](auto Manifest::* limit) {
    if (declared.*limit == unstated.*limit) declared.*limit = found.*limit;
  };
  take(&Manifest::head_dim_multiple);
  take(&Manifest::max_head_dim);
  take(&Manifest::head_dims);
  take(&Manifest::value_dim_equals_head_dim);
  take(&Manifest::heads_multiple);
  take(&Manifest::max_heads);
  take(&Manifest::group_sizes);
  take(&Manifest::queries_multiple);
  take(&Manifest::min_queries);
  take(&Manifest::max_queries);
  take(&Manifest::keys_multiple);
  take(&Manifest::min_keys);
  take(&Manifest::max_keys);
  take(&Manifest::same_lengths);
  take(&Manifest::additive_masks);
  take(&Manifest::bool_masks);
  take(&Manifest::required);
  take(&Manifest::excluded);
  return declared;
}

std::unique_ptr<Kernel> limited_kernel(std::unique_ptr<Kernel> kernel, Manifest manifest) {
  return std::make_unique<LimitedKernel>(std::move(kernel), std::move(manifest));
}

}  // namespace attest
