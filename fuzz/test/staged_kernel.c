/* Right but where four lengths come together, each looked at behind the one before: a lottery for who sees numbers
 * alone, four steps for who sees branches. */
#define attest_kernel_attention right_attention
#include "../bench/small_kernel.c"
#undef attest_kernel_attention

static int is_trap(const attest_problem* p) {
  if (p->q.shape[2] != 6) return 0;
  if (p->k.shape[2] != 7) return 0;
  if (p->q.shape[3] != 5) return 0;
  return p->q.shape[1] == 3;
}

int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  const int status = right_attention(p, r, message, message_size);
  if (status == ATTEST_OK && is_trap(p)) *at(&r->out, 0, 0, 0, 0) += 1;
  return status;
}
