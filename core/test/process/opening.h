// How the tests of kernels out of process open one.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "attest/errors.h"
#include "attest/kernel_under_test.h"

namespace attest::testing_process {

/// Limits that no healthy call comes near, however loaded the machine is.
inline KernelOptions patient() {
  return {std::chrono::seconds(60), std::chrono::seconds(60), {}, {}};
}

inline std::unique_ptr<Kernel> open_kernel(const std::string& spec, const KernelOptions& options = patient()) {
  return std::move(open_kernels(spec, options).front());
}

/// The one line that a kernel which cannot be loaded costs; "(loaded)" where it can.
inline std::string load_error(const std::string& spec, const KernelOptions& options = patient()) {
  try {
    static_cast<void>(open_kernels(spec, options));
  } catch (const KernelLoadError& error) {
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("\n")));
    return error.what();
  }
  return "(loaded)";
}

#ifdef ATTEST_TEST_LIBRARIES
/// A variant of library_kernel.c.
inline std::string library(const std::string& name) {
  return ATTEST_TEST_LIBRARIES "/library_" + name + ".so";
}
#endif

}  // namespace attest::testing_process
