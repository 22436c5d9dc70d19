// The main program of tests whose workers are the test itself, started as `TEST worker LIBRARY`.
#include <gtest/gtest.h>

#include <cstring>

#include "core/isolation/worker_main.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "worker") == 0) return attest::worker_main(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
