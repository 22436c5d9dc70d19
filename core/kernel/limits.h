// What extents the limits of a manifest allow, for whoever checks a case, makes one fit or arranges another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/kernel/manifest.h"

namespace attest {

/// The extents that one axis may have: those of a list where there is one, else multiples between a least and a most.
struct AllowedExtents {
  std::span<const std::int64_t> list{};  ///< ascending; of a manifest, which must outlive it
  std::int64_t multiple = 1, least = 0;
  std::optional<std::int64_t> most{};

  [[nodiscard]] bool has(std::int64_t extent) const;
  /// The smallest of at least `extent`; nothing where there is none.
  [[nodiscard]] std::optional<std::int64_t> from(std::int64_t extent) const;
  /// The same, or else the largest; `extent` itself where nothing is allowed.
  [[nodiscard]] std::int64_t nearest(std::int64_t extent) const;
};

[[nodiscard]] AllowedExtents allowed_queries(const Manifest& manifest);
[[nodiscard]] AllowedExtents allowed_keys(const Manifest& manifest);
/// Lengths that may be both at once, M = N.
[[nodiscard]] AllowedExtents allowed_tokens(const Manifest& manifest);
[[nodiscard]] AllowedExtents allowed_head_dims(const Manifest& manifest);
/// Of dv by itself: "value_dim": "head_dim" ties it to dk besides.
[[nodiscard]] AllowedExtents allowed_value_dims(const Manifest& manifest);

/// Are so many heads on so many key-value heads of an attention problem within the limits?
[[nodiscard]] bool allows_heads(const Manifest& manifest, std::int64_t heads, std::int64_t kv_heads);

/// Does the case have what the word says? Of lse, which a call asks for, it neither has nor lacks anything.
[[nodiscard]] bool has(const Case& c, Feature feature);
[[nodiscard]] bool lacks(const Case& c, Feature feature);

/// Empty where a call with the case may ask for its lse, else why not: "the manifest's lse is false", or which of
/// `excludes` forbids it.
[[nodiscard]] std::string why_no_lse(const Manifest& manifest, const Case& c);
/// Whether a call with the case is to ask for it: where that is wanted and may be, and where `requires` wants it.
[[nodiscard]] bool asks_lse(const Manifest& manifest, const Case& c, bool wanted);

/// Empty, or which of `requires` the case lacks, or which of `excludes` it has together.
[[nodiscard]] std::string why_features(const Manifest& manifest, const Case& c);

}  // namespace attest
