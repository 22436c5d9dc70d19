// UsageError with its line formatted.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "core/support/errors.h"

namespace attest {

template <class... T>
[[noreturn]] void refuse(fmt::format_string<T...> text, T&&... arguments) {
  throw UsageError(fmt::format(text, std::forward<T>(arguments)...));
}

}  // namespace attest
