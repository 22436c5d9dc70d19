// Journals: refused in one line, or a journal whose canonical form is canonical and comes back from its text.
#include "attest/errors.h"
#include "attest/journal.h"
#include "target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  try {
    const Journal journals[] = {parse_journal(text_of(data, size), "input")};
    const std::string sources[] = {"input"};
    const std::string text = to_text(canonical(journals, sources));
    try {
      const Journal again[] = {parse_journal(text, "its canonical form")};
      require(to_text(canonical(again, sources)) == text, "a canonical journal has another canonical form");
    } catch (const UsageError& error) {
      require(false, error.what());
    }
  } catch (const UsageError& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error of two lines");
  }
  return 0;
}
