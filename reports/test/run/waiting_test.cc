#include "reports/run/waiting.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace attest {
namespace {

std::string said(bool quiet, std::chrono::milliseconds patience, std::chrono::milliseconds lasting) {
  testing::internal::CaptureStderr();
  {
    const Waiting waiting(quiet, patience);
    std::this_thread::sleep_for(lasting);
  }
  return testing::internal::GetCapturedStderr();
}

TEST(Waiting, SaysSoOnceItLasts) {
  using namespace std::chrono_literals;
  EXPECT_EQ(said(false, 1ms, 1s), "waiting for the kernel's first reply\n");
  EXPECT_EQ(said(false, 1h, 1ms), "") << "and ends at once";
  EXPECT_EQ(said(true, 1ms, 200ms), "");
}

}  // namespace
}  // namespace attest
