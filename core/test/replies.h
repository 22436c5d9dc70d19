// How a kernel's calls end: expect_ending(kernel->run(c), CallStatus::died, Says("signal 11")).
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/kernel/kernel_under_test.h"
#include "core/test/says.h"

namespace attest {

inline void expect_ending(const Reply& reply, CallStatus status, const testing::Matcher<std::string>& message) {
  EXPECT_EQ(reply.status, status) << reply.message;
  EXPECT_THAT(reply.message, message);
}

}  // namespace attest
