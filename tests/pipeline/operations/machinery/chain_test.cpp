#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace {
namespace {

using namespace test;

TEST(Chain, NamesTheStepThatFailed) {
  UserMap map{.name = "bad", .output = {.dtype = DType::kF32, .shape = {2}}};
  map.function = [](auto&&...) { throw std::runtime_error("no luck"); };
  try {
    run_chain(flip() | user_map(map), random_image(4, 5, 3, 1), DType::kU8);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "map user_map 'bad': no luck");
  }
  map.function = [](auto&&...) { throw 42; };
  EXPECT_THROW(run_chain(user_map(map), random_image(4, 5, 3, 1), DType::kU8), Error);
}

}  // namespace
}  // namespace headrace
