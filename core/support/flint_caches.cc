#include "core/support/flint_caches.h"

#include <flint/flint.h>

namespace attest::detail {
namespace {

struct FlintCaches {
  ~FlintCaches() { flint_cleanup(); }
};

}  // namespace

void free_flint_caches_at_thread_end() {
  thread_local FlintCaches caches;
}

}  // namespace attest::detail
