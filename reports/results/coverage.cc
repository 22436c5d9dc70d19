#include "reports/results/coverage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/measure/enough.h"
#include "core/problem/fields.h"
#include "core/problem/shape_class.h"
#include "properties/catalogue/property.h"
#include "properties/road/fit_form.h"
#include "properties/road/offered.h"
#include "reports/results/summary.h"
#include "reports/text/text.h"

namespace attest {
namespace {

struct LeftOut {
  ShapeFacet facet;
  std::uint8_t index;
  ShapeCount count;
};

/// Classes that were hardly judged, those of most cases first.
std::vector<LeftOut> left_out_classes(const ShapeCounts& shapes) {
  std::vector<LeftOut> found;
  for (std::size_t i = 0; i < shapes.facets.size(); ++i) {
    for (const auto& [index, count] : shapes.facets[i]) {
      const auto facet = static_cast<ShapeFacet>(i);
      if (count.judged < least_judged(count.judged + count.unjudged)) found.push_back({facet, index, count});
    }
  }
  // Of as many cases in the order of the facets.
  std::ranges::sort(found, {}, [](const LeftOut& one) {
    return std::tuple(-(one.count.judged + one.count.unjudged), one.facet, one.index);
  });
  return found;
}

/// What facet it is of, where the words of the class do not say it themselves.
std::string words_of(const LeftOut& one) {
  const std::string words = class_words(one.facet, one.index);
  const bool tiles =
      one.facet == ShapeFacet::tiles_16 || one.facet == ShapeFacet::tiles_64 || one.facet == ShapeFacet::tiles_128;
  if (tiles) return fmt::format("{} ({})", name_of(one.facet), words);
  return one.facet == ShapeFacet::group ? "heads to a key-value head " + words : words;
}

/// An axis of which the largest judged extent is told, and the most that a manifest allows.
struct ReachAxis {
  std::string_view name;
  std::int64_t Reach::* extent;
  std::optional<std::int64_t> Limits::* most;
};
constexpr std::array<ReachAxis, 4> axes{{{"M", &Reach::queries, &Limits::queries},
                                         {"N", &Reach::keys, &Limits::keys},
                                         {"dk", &Reach::dk, &Limits::head_dim},
                                         {"H", &Reach::heads, &Limits::heads}}};

/// What a case may ask of a kernel. Each of them has paths of its own, so that the lengths of one say nothing of
/// another.
enum class Asked : std::uint8_t { attention, gradients, multihead };
constexpr std::array<std::string_view, 3> asked_words{"", "gradients of ", "multi-head attention of "};

Asked asked_by(std::string_view property) {
  static const auto all = [] {
    std::map<std::string_view, Asked> of;
    for (const Property* row : catalogue())
      of[row->name] = row->operation == Operation::multihead ? Asked::multihead
                      : row->backward != Backward::none      ? Asked::gradients
                                                             : Asked::attention;
    return of;
  }();
  const auto found = all.find(property);
  return found == all.end() ? Asked::attention : found->second;
}

/// By Asked, the largest extents that any judged case had, each by itself.
std::array<std::optional<Reach>, asked_words.size()> reaches_of(std::span<const KernelSummary> kernels) {
  std::array<std::optional<Reach>, asked_words.size()> reaches;
  for (const KernelSummary& kernel : kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (!property.tally.shapes.largest) continue;
      std::optional<Reach>& largest = reaches[static_cast<std::size_t>(asked_by(property.name))];
      if (!largest) largest.emplace();
      largest->merge(*property.tally.shapes.largest);
    }
  }
  return reaches;
}

/// Nobody says how many: the classes of lengths end there.
constexpr std::int64_t beyond_all_classes = any_extent;

/// By Asked, the end of the highest class of lengths that both M and N of a judged case were in, or above; nothing
/// where classes were not counted.
std::array<std::optional<std::int64_t>, asked_words.size()> both_reaches_of(std::span<const KernelSummary> kernels) {
  std::array<std::optional<std::int64_t>, asked_words.size()> reaches;
  for (const KernelSummary& kernel : kernels) {
    for (const PropertySummary& property : kernel.properties) {
      std::optional<std::int64_t>& most = reaches[static_cast<std::size_t>(asked_by(property.name))];
      for (const auto& [index, count] : property.tally.shapes.of(ShapeFacet::lengths)) {
        if (count.judged == 0) continue;
        const std::size_t lower = std::min(index / length_ranges.size(), index % length_ranges.size());
        most = std::max(most.value_or(0), length_ranges[lower].most);
      }
    }
  }
  return reaches;
}

std::optional<std::int64_t> least_both_reach(std::span<const KernelSummary> kernels) {
  std::optional<std::int64_t> least;
  const auto all = both_reaches_of(kernels);
  for (const Asked asked : {Asked::attention, Asked::gradients})
    if (const auto& both = all[static_cast<std::size_t>(asked)]; both) least = std::min(least.value_or(*both), *both);
  return least;
}

/// "both > 512" of M and N, where that is less than either by itself.
std::string never_both(std::span<const KernelSummary> kernels, std::size_t asked, const Reach& largest) {
  const std::optional<std::int64_t> both = both_reaches_of(kernels)[asked];
  if (!both || *both == beyond_all_classes || *both >= std::min(largest.queries, largest.keys)) return {};
  const bool offered = std::ranges::any_of(kernels, [&](const KernelSummary& kernel) {
    const auto allows = [&](const std::optional<std::int64_t>& most) { return !most || *most > *both; };
    return allows(kernel.limits.queries) && allows(kernel.limits.keys);
  });
  return offered ? fmt::format("both > {}", *both) : "";
}

}  // namespace

std::string shapes_left_out(const ShapeCounts& shapes, const std::map<Reason, std::int64_t>& reasons) {
  const std::vector<LeftOut> found = left_out_classes(shapes);
  if (found.empty()) return {};
  constexpr std::size_t shown = 3;
  std::vector<std::string> words;
  for (const LeftOut& one : found) {
    if (words.size() == shown) break;
    words.push_back(
        fmt::format("{}: {}", words_of(one), judged_text(one.count.judged, one.count.judged + one.count.unjudged)));
  }
  return fmt::format("hardly judged on shapes that the manifest offers: {}{}; {}", fmt::join(words, ", "),
                     found.size() > shown ? fmt::format(" and {} more classes", found.size() - shown) : "",
                     cause_and_remedy(reasons));
}

std::string forms_left_out(const Manifest& manifest, DType dtype, const DrawnCounts& drawn,
                           const std::map<Reason, std::int64_t>& reasons) {
  std::int64_t refused = 0;
  for (const auto& [reason, count] : reasons) refused += is_refusal(reason) ? count : 0;
  std::vector<std::string> found;
  const auto look = [&](const std::string& kind, const std::string& words) {
    const auto judged = drawn.find(kind);
    const std::int64_t cases = judged == drawn.end() ? 0 : judged->second;
    if (cases < least_judged(refused))
      found.push_back(fmt::format("{}: {} judged", words, cases == 0 ? "no case" : std::to_string(cases)));
  };
  if (const auto listed = manifest.kv_dtypes.find(dtype); listed != manifest.kv_dtypes.end())
    for (const KvDtypes& formats : listed->second)
      look("kv-dtypes:" + kind_of(formats), fmt::format("k in {} and v in {}", name_of(formats.k), name_of(formats.v)));
  for (const Causal form : manifest.causal)
    look(fmt::format("causal:{}", name_of(form)), fmt::format("causal {}", name_of(form)));
  if (const auto window = manifest.variants.find(window_variant.name); window != manifest.variants.end()) {
    if (window->second.left) look("window_left:given", "windows with a left end");
    if (window->second.right) look("window_right:given", "windows with a right end");
  }
  if (manifest.variants.contains(chunk_variant.name)) look("attention_chunk:given", std::string(chunk_variant.words));
  for (const Variant& variant : variants())
    if ((variant.is_about_sequences || variant.is_about_memory) && manifest.variants.contains(variant.name))
      look(std::string(variant.name) + ":given", std::string(variant.words));
  if (found.empty()) return {};
  return fmt::format("hardly judged in forms that the manifest lists: {}; {}", fmt::join(found, ", "),
                     cause_and_remedy(reasons));
}

Concerned concerned_in(const Summary& summary) {
  std::map<std::string_view, bool> enough;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (property.verdict == Outcome::skipped) continue;
      const bool judged = property.tally.judged() > 0 && !property.hardly_tested;
      const auto [place, added] = enough.try_emplace(property.name, judged);
      place->second = place->second && judged;
    }
  }
  return {static_cast<std::int64_t>(enough.size()),
          std::ranges::count_if(enough, [](const auto& one) { return one.second; })};
}

bool applies(const PropertySummary& property) {
  return !property.ruled_out && (property.verdict != Outcome::skipped || property.tally.cases() == 0);
}

Applying applies_in(const KernelSummary& kernel) {
  return {std::ranges::count_if(kernel.properties, applies), std::ssize(kernel.properties)};
}

Applying applies_in(const Summary& summary) {
  std::map<std::string_view, bool> any;
  for (const KernelSummary& kernel : summary.kernels)
    for (const PropertySummary& property : kernel.properties)
      any[property.name] = any[property.name] || applies(property);
  return {std::ranges::count_if(any, [](const auto& one) { return one.second; }), std::ssize(any)};
}

std::string applies_text(const Applying& applying) {
  return fmt::format("Applies: {} of {} {}", applying.properties, applying.of,
                     applying.of == 1 ? "property" : "properties");
}

std::optional<Reach> largest_judged(const Summary& summary) {
  for (const std::optional<Reach>& largest : reaches_of(summary.kernels))
    if (largest) return largest;
  return std::nullopt;
}

std::optional<std::int64_t> both_judged(const Summary& summary) {
  return least_both_reach(summary.kernels);
}

std::string never_judged(const Summary& summary) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < asked_words.size(); ++i) {
    const std::optional<Reach> largest = reaches_of(summary.kernels)[i];
    if (!largest) continue;
    std::vector<std::string> beyond;
    for (const ReachAxis& axis : axes) {
      const std::int64_t judged = *largest.*axis.extent;
      const bool offered = std::ranges::any_of(summary.kernels, [&](const KernelSummary& kernel) {
        const std::optional<std::int64_t>& most = kernel.limits.*axis.most;
        return reaches_of({&kernel, 1})[i] && (!most || *most > judged);
      });
      if (offered) beyond.push_back(fmt::format("{} > {}", axis.name, judged));
      if (std::string both = never_both(summary.kernels, i, *largest); axis.extent == &Reach::keys && !both.empty())
        beyond.push_back(std::move(both));
    }
    if (!beyond.empty()) all.push_back(fmt::format("{}{}", asked_words[i], fmt::join(beyond, ", ")));
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

std::string covered_text(const Summary& summary) {
  const Concerned concerned = concerned_in(summary);
  std::set<std::string_view> kernels;
  for (const KernelSummary& kernel : summary.kernels) kernels.insert(kernel.id);
  return fmt::format("{} of {} {} that concern{} {} judged; {} {}", concerned.judged, concerned.properties,
                     concerned.properties == 1 ? "property" : "properties", concerned.properties == 1 ? "s" : "",
                     kernels.size() == 1 ? "this kernel" : "these kernels", with_commas(summary.judged()),
                     summary.judged() == 1 ? "case" : "cases");
}

std::string coverage_text(const Summary& summary) {
  const std::string beyond = never_judged(summary);
  return covered_text(summary) + (beyond.empty() ? "" : "; never judged: " + beyond);
}

std::string quick_look(const Summary& summary) {
  if (!summary.drawn_whole) return {};
  std::int64_t cases = 0;
  for (const KernelSummary& kernel : summary.kernels)
    for (const PropertySummary& property : kernel.properties) cases = std::max(cases, property.tally.cases());
  if (cases == 0 || cases >= quick_look_ends) return {};
  const std::int64_t least = std::max<std::int64_t>(least_judged(cases), 1);
  const std::string_view cut = summary.time_over     ? " when the time was over"
                               : summary.interrupted ? " when it was interrupted"
                                                     : "";
  return fmt::format(
      "{} {} a property{}: a quick look, in which {} judged {} for a verdict; from {} cases on it takes 30", cases,
      cases == 1 ? "case" : "cases", cut, least, least == 1 ? "one is enough" : "ones are enough", quick_look_ends);
}

}  // namespace attest
