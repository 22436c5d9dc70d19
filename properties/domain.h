// Agreement of laws that claim bits inside the domain of definition only: what hidden keys hold, where rows end.
#pragma once

#include "agree.h"

namespace attest {

/// agree, about bits; where bits must agree and do not, elements of fully masked rows and those outside the domain of
/// definition on either side are not held to it. Excused when no other element is left.
[[nodiscard]] Verdict agree_in_domain(Sides sides, Match match);

}  // namespace attest
