// Coverage: what a run judged of what kernels offer, and when that is too little for a verdict of held.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/journal/journal.h"
#include "core/kernel/manifest.h"

namespace attest {

struct Summary;  // summary.h
struct KernelSummary;
struct PropertySummary;

/// What shapes that the kernel was asked it was hardly judged on, and what to do; empty where there is none. By every
/// class of shapes (shape_class.h): fewer of its cases were judged than least_judged asks for. `reasons`: why cases of
/// the kernel were not judged.
[[nodiscard]] std::string shapes_left_out(const ShapeCounts& shapes, const std::map<Reason, std::int64_t>& reasons);

/// The same of forms: formats of k and v and causal forms that the manifest lists for the dtype, of which fewer cases
/// were judged than least_judged asks of as many as the kernel refused. `drawn`: judged cases by their kinds.
[[nodiscard]] std::string forms_left_out(const Manifest& manifest, DType dtype, const DrawnCounts& drawn,
                                         const std::map<Reason, std::int64_t>& reasons);

struct Concerned {
  std::int64_t properties = 0;  ///< that concern a kernel of the run in a dtype
  std::int64_t judged = 0;      ///< of these, judged on enough cases wherever they concern one
};
[[nodiscard]] Concerned concerned_in(const Summary& summary);

/// Whether a case of the property was one for the kernel: a manifest may rule all of them out.
[[nodiscard]] bool applies(const PropertySummary& property);
struct Applying {
  std::int64_t properties = 0, of = 0;
};
/// How many of the properties that were asked apply to the kernel, and to any kernel of the run.
[[nodiscard]] Applying applies_in(const KernelSummary& kernel);
[[nodiscard]] Applying applies_in(const Summary& summary);
/// "Applies: 39 of 41 properties".
[[nodiscard]] std::string applies_text(const Applying& applying);

/// The largest extents that any judged case of attention had, each by itself; without one, of gradients or else of
/// multi-head attention. Nothing where shapes were not recorded.
[[nodiscard]] std::optional<Reach> largest_judged(const Summary& summary);

/// No case had both M and N beyond this, of attention or of gradients, whichever was judged on less: the end of a class
/// of lengths (shape_class.h). Nothing where classes were not counted.
[[nodiscard]] std::optional<std::int64_t> both_judged(const Summary& summary);

/// "M > 129, N > 8192, both > 128, dk > 256, H > 4; gradients of M > 70, N > 130": beyond what no case of the run was
/// judged, where the manifests of its kernels allow more; of attention, of gradients and of multi-head attention. Empty
/// where no case was, where shapes were not recorded, and where there is nothing beyond.
[[nodiscard]] std::string never_judged(const Summary& summary);

/// "39 of 41 properties that concern this kernel judged; 14,853 cases".
[[nodiscard]] std::string covered_text(const Summary& summary);
/// The same and what was never judged: "…; never judged: M > 129, H > 4".
[[nodiscard]] std::string coverage_text(const Summary& summary);

/// "20 cases a property: a quick look, …" where fewer were asked for than a verdict of held should rest on; else empty.
[[nodiscard]] std::string quick_look(const Summary& summary);

}  // namespace attest
