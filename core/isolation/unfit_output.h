// What an output that is not as asked for looks like: the mistake behind a wrong shape, where it shows.
#pragma once

#include <string>

#include "core/problem/case.h"

namespace attest::process {

/// In words that follow "out has the shape …; it must be …": ": it is q itself", ": it looks like [batch, tokens,
/// heads, dim]", ": it looks like the weights [batch, heads, queries, keys]"; empty where nothing is known. `found` is
/// a reply to `c` of another shape than c.out_shape().
[[nodiscard]] std::string likeness(const Tensor& found, const Case& c);

}  // namespace attest::process
