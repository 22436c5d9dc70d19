// What a call is refused with: EXPECT_THAT(refusal([&] { return parse(text); }), Says("line 3")).
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/support/errors.h"
#include "core/test/says.h"

namespace attest {

/// The one line of the error that the call ends in; empty where it ends in none.
template <class Error = UsageError, class Call>
[[nodiscard]] std::string refusal(const Call& call) {
  try {
    static_cast<void>(call());
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), NeverSays("\n"));
    return error.what();
  }
  return {};
}

}  // namespace attest
