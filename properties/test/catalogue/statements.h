// What each row of the catalogue asks of a case, what it draws, which calls it makes and which wrong kernels it sees;
// statements.txt is the record of it.
#pragma once

#include <map>
#include <string>

#include "properties/catalogue/property.h"

namespace attest {

/// The paragraph of a row, as statements.txt has it: hypotheses, ranges of what is drawn, calls, wrong kernels that are
/// seen. A function of the row alone.
[[nodiscard]] std::string described(const Property& p);

/// The paragraphs of statements.txt by their first lines.
[[nodiscard]] const std::map<std::string, std::string>& recorded();

/// Empty where right kernels hold and the row is as recorded; else what is not.
[[nodiscard]] std::string change_of(const Property& p);

}  // namespace attest
