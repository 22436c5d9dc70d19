// The frame of a page: one self-contained HTML file, which loads nothing.
#pragma once

#include <string>
#include <string_view>

#include "reports/page/plots.h"

namespace attest {

/// What the content-security-policy of a page lets run: nobody can have written it into a name beforehand.
[[nodiscard]] std::string fresh_nonce();

struct PageFrame {
  std::string title, heading;  ///< words
  std::string first;           ///< HTML below the heading
  std::string body;            ///< HTML; a <nav> in it is where the filter goes
  PagePlots plots = {};        ///< whose HTML stands in the body already
};
[[nodiscard]] std::string framed(const PageFrame& page, const std::string& nonce);

}  // namespace attest
