#include "vega_script.h"

#ifdef ATTEST_VEGA
// The assembler copies the files' bytes into the program; a C array of half a megabyte would take seconds to compile.
asm(R"(.section .rodata
.global attest_vega_begin, attest_vega_end, attest_vega_licence_begin, attest_vega_licence_end
attest_vega_begin:
.incbin ")" ATTEST_VEGA R"(/build/vega.min.js"
attest_vega_end:
attest_vega_licence_begin:
.incbin ")" ATTEST_VEGA R"(/LICENSE"
attest_vega_licence_end:
.text
)");
extern "C" const char attest_vega_begin[], attest_vega_end[], attest_vega_licence_begin[], attest_vega_licence_end[];
#endif

namespace attest {

std::string_view vega_script() {
#ifdef ATTEST_VEGA
  return {attest_vega_begin, attest_vega_end};
#else
  return {};
#endif
}

std::string_view vega_licence() {
#ifdef ATTEST_VEGA
  return {attest_vega_licence_begin, attest_vega_licence_end};
#else
  return {};
#endif
}

}  // namespace attest
