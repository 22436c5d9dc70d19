/* Offers what mine.c does, and refuses every problem. */
#define attest_kernel_attention computed
#include "../../../starter/mine.c"
#undef attest_kernel_attention
int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  (void)p, (void)r;
  snprintf(message, message_size, "not today");
  return ATTEST_UNSUPPORTED;
}
