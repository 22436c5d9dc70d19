// The page of a survey: one self-contained HTML file.
#pragma once

#include <string>
#include <vector>

#include "reports/page/block.h"
#include "reports/survey/survey_row.h"

namespace attest {

/// For each library, path, dtype and output with rows of several versions what is otherwise in the later one. Versions
/// are in the order of their numbers: 2.9 comes before 2.13.
[[nodiscard]] Blocks versions_section(const std::vector<SurveyRow>& rows);

/// The page of rows that are `joined`. Every string that came from outside is escaped; the page loads nothing.
[[nodiscard]] std::string survey_page(const std::vector<SurveyRow>& rows);

}  // namespace attest
