// What Attest's Python package asks, asked by hand; reports/test/python asks it as users do.
#include "reports/service/service.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/problem/case_file.h"
#include "core/support/descriptor.h"
#include "core/test/cases.h"
#include "core/value/safetensors.h"
#include "reports/test/json.h"

namespace attest {
namespace {

using testing::HasSubstr;

constexpr std::string_view manifest = R"("manifest":{"name":"mine","dtypes":["f32"]})";

/// The file that both sides write to, and what is asked with it.
class Service : public testing::Test {
 protected:
  nlohmann::json ask(const std::string& members, const std::string& file = {}) {
    if (ftruncate(file_.number(), std::max<off_t>(static_cast<off_t>(file.size()), size())) != 0) ADD_FAILURE();
    EXPECT_EQ(pwrite(file_.number(), file.data(), file.size(), 0), static_cast<ssize_t>(file.size()));
    return parsed_json(answer_request("{\"bytes\":" + std::to_string(file.size()) + "," + members + "}", memory_));
  }
  TensorFile answered(const nlohmann::json& answer) {
    std::string bytes(answer.at("bytes").get<std::size_t>(), '\0');
    EXPECT_EQ(pread(file_.number(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return read_safetensors(bytes, "the answer");
  }
  [[nodiscard]] off_t size() const { return lseek(file_.number(), 0, SEEK_END); }

  const Descriptor file_{memfd_create("service", 0)};
  SharedFile memory_{file_.number()};
};

/// Two keys of equal weight: the answer is the mean of 1 and 4.
AnsweredCase mean_of_values() {
  Case c = test::one_query(DType::f32, {0}, {0, 0}, {1, 4});
  return {c, Tensor(DType::f32, c.out_shape(), std::vector<double>{2.5})};
}

const Tensor& named(const TensorFile& file, std::string_view name) {
  for (const auto& [is, tensor] : file.tensors)
    if (is == name) return tensor;
  throw std::runtime_error("there is no such tensor");
}

TEST_F(Service, GivesEnclosuresAndBounds) {
  const std::string file = encode_case(mean_of_values());
  for (const char* narrow : {"true", "false"}) {
    const TensorFile bounds =
        answered(ask("\"ask\":\"bounds\",\"narrow\":" + std::string(narrow) + "," + std::string(manifest), file));
    EXPECT_LE(named(bounds, "lower")[0], 2.5);
    EXPECT_GE(named(bounds, "upper")[0], 2.5);
    EXPECT_LT(named(bounds, "upper")[0] - named(bounds, "lower")[0], 1e-12);
    EXPECT_GT(named(bounds, "bound")[0], 0);
    EXPECT_LT(named(bounds, "bound")[0], 1e-5);
    EXPECT_EQ(named(bounds, "judged")[0], 1);
    EXPECT_NEAR(named(bounds, "lse")[0], std::log(2.0), 1e-15);
  }
}

TEST_F(Service, JudgesAnAnswer) {
  AnsweredCase asked = mean_of_values();
  const std::string judge = "\"ask\":\"judge\"," + std::string(manifest);
  EXPECT_EQ(ask(judge, encode_case(asked)).at("verdict"), "held");
  asked.found.set(0, 2.6);
  const nlohmann::json wrong = ask(judge, encode_case(asked));
  EXPECT_EQ(wrong.at("verdict"), "violated");
  EXPECT_EQ(wrong.at("element"), 0);
  EXPECT_EQ(wrong.at("exact"), nlohmann::json::array({2.5, 2.5}));
  EXPECT_EQ(wrong.at("elements_beyond"), 1);
  asked.found.set(0, std::nan(""));
  EXPECT_EQ(ask(judge, encode_case(asked)).at("verdict"), "violated");
}

TEST_F(Service, DrawsACaseAndMakesItSimpler) {
  const std::string draw = R"("ask":"case","property":"attention.oracle","dtype":"bf16","seed":3,"k":2)";
  const nlohmann::json whole = ask(draw);
  const TensorFile drawn = answered(whole);
  EXPECT_EQ(drawn.metadata.at("k"), "2");
  EXPECT_EQ(ask(draw), whole);
  const TensorFile simple = answered(ask(draw + R"(,"head":[0],"crop":[1,1,1,1,1,1,1],"numbers":[0,0,0])"));
  EXPECT_EQ(named(simple, "q").elements(), 1);
  EXPECT_EQ(named(simple, "q")[0], 0);
  EXPECT_EQ(simple.metadata.at("shrunk"), "yes");
}

TEST_F(Service, RefusesInOneLine) {
  const std::string file = encode_case(mean_of_values());
  const std::string bounds = "\"ask\":\"bounds\"," + std::string(manifest);
  for (const std::string& members : {
           std::string(R"("ask":"nothing")"),
           std::string(R"("ask":7)"),
           std::string("\"ask\":\"judge\""),
           bounds + R"(,"rows":[1])",
           bounds + R"(,"rows":[])",
           bounds + R"(,"rows":"all")",
           bounds + R"(,"out_dtype":"bool")",
           bounds + R"(,"unknown":1)",
           std::string(R"("ask":"bounds","manifest":{"name":"mine","dtypes":["f64"]})"),
           std::string(R"("ask":"bounds","manifest":[])"),
           std::string(R"("ask":"case","crop":[-1])"),
           std::string(R"("ask":"case","numbers":[1e300])"),
           std::string(R"("ask":"case","property":"attention.oracle","dtype":"f32","k":-1)"),
       }) {
    const nlohmann::json answer = ask(members, file);
    ASSERT_TRUE(answer.contains("refused")) << members << " gives " << answer.dump().substr(0, 200);
    EXPECT_EQ(answer.at("refused").get<std::string>().find('\n'), std::string::npos);
    EXPECT_THAT(answer.at("refused").get<std::string>(), Not(HasSubstr("a mistake in attest"))) << members;
  }
  for (const std::string& damaged :
       {file.substr(0, 20), file.substr(0, file.size() - 1), std::string(64, '\xff'), file + "x"})
    EXPECT_TRUE(ask(bounds, damaged).contains("refused"));
  const auto refused = [&](std::string_view text) {
    return parsed_json(answer_request(text, memory_)).contains("refused");
  };
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused("[]"));
  EXPECT_TRUE(refused(std::string(100, '[')));
  EXPECT_TRUE(refused(R"({"ask":"bounds","bytes":9223372036854775807,"manifest":{"name":"m","dtypes":["f32"]}})"));
  // And what comes next is answered.
  EXPECT_FALSE(ask(bounds, file).contains("refused"));
}

}  // namespace
}  // namespace attest
