// The process of a shared library behind walls: worker_main, in a program that is nothing else.
#include "core/isolation/worker_main.h"

int main(int argc, char** argv) {
  return attest::worker_main(argc, argv, /*enclosed=*/true);
}
