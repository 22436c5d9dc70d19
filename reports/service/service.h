// Answers what Attest's Python package asks (core/adapters/python/attest/_service.py), one request after another in one
// process: an array's exact values, or a verdict, then cost no start of a program.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "reports/service/shared_file.h"

namespace attest {

/// Answers a request, a line of JSON with what is asked under "ask", by a line of JSON. Tensors go through the file: a
/// case file (case.h) of the "bytes" that the request announces, and a safetensors file of the "bytes" of the answer.
/// What the user got wrong is {"refused": "one line"}, and so is a mistake of attest itself, which says that it is one.
[[nodiscard]] std::string answer_request(std::string_view request, SharedFile& memory);

/// `PROGRAM service DESCRIPTOR`: says {"attest": VERSION} in a line and answers the requests on standard input until
/// it ends; the descriptor is that of the memory. Not for people. Returns the exit status: 0, or 2 when it was started
/// by hand.
int service_main(int argc, char** argv);

}  // namespace attest
