// Parts of a page that are packed: a page of many tables is a twentieth of its size, and stays one file.
#pragma once

#include <string>
#include <string_view>

namespace attest {

[[nodiscard]] std::string base64_of(std::string_view bytes);

/// What page/script.js puts in its own place, unpacked, before anything else of the page's scripts runs. HTML that
/// would not be half as long stays as it is.
[[nodiscard]] std::string packed(std::string html);

}  // namespace attest
