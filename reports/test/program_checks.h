// What the tests of the program share: kernels and cases to write, and how a mistake is answered.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "reports/test/shell.h"

namespace attest {

std::ptrdiff_t lines_in(const std::string& text);

/// What a shell line writes that ends with this status: one line.
std::string one_line_of(const fake::Folder& folder, const std::string& line, int status);

/// Refused with exit status 2 (or another) and one line that holds `part`.
void expect_refused(const std::string& arguments, const std::string& part, int status = 2);

/// A 1-head case of 3 queries and keys whose q begins with `first`, written without a check of its values.
void write_case(const std::filesystem::path& file, double first, bool all_masked = false);

bool has_numpy(const fake::Folder& folder);

/// Writes NAME.py: the project's adapter serves what `code` defines as attention, with `more` in its manifest.
void write_python(const fake::Folder& folder, const std::string& name, const std::string& code,
                  const std::string& more);

/// A kernel as a Python file, its scale multiplied by `factor`; empty where Python lacks numpy.
std::string python_kernel(const fake::Folder& folder, const std::string& name, const std::string& factor);

}  // namespace attest
