/* There for its name alone: see CMakeLists.txt. */
int attest_test_stub(void);
int attest_test_stub(void) {
  return 0;
}
