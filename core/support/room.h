// Memory that is used again and again.
#pragma once

#include <cstdint>
#include <vector>

namespace attest::detail {

/// Room for n entries at least. Never less than there was, so that a loop over rows allocates once.
template <class T>
void fit(std::vector<T>& v, std::int64_t n) {
  if (static_cast<std::int64_t>(v.size()) < n) v.resize(static_cast<std::size_t>(n));
}

}  // namespace attest::detail
