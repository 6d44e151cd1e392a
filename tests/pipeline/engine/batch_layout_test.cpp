#include "headrace/pipeline/engine/batch_layout.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

const Fields kFields{{.name = "image", .dtype = DType::kU8, .shape = {5, 5, 3}},
                     {.name = "label", .dtype = DType::kI64, .shape = {}}};

TEST(BatchLayout, PlacesFieldsOneAfterAnotherAligned) {
  const BatchLayout layout(kFields, 10, ReplicaRange::alone(4));
  EXPECT_EQ(layout.local_rows, 3);
  EXPECT_EQ(layout.row_bytes[0], 75U);
  EXPECT_EQ(layout.row_bytes[1], 8U);
  EXPECT_EQ(layout.offset[0], 0U);
  EXPECT_EQ(layout.offset[1], 256U);
  EXPECT_EQ(layout.buffer_bytes, 320U);
  EXPECT_EQ(layout.sample_bytes, 83U);
}

// In the order of the numbers given, before the others, which are sent.
TEST(BatchLayout, PutsFieldsApart) {
  const std::vector<std::size_t> apart{1};
  const BatchLayout together(kFields, 10, ReplicaRange::alone(2)),
      layout(kFields, 10, ReplicaRange::alone(2), apart);
  EXPECT_EQ(together.sent_from, 0U);
  EXPECT_EQ(layout.offset[1], 0U);
  EXPECT_EQ(layout.offset[0], layout.sent_from);
  EXPECT_GE(layout.sent_from, layout.row_bytes[1] * 5);
  EXPECT_EQ(layout.buffer_bytes, together.buffer_bytes);
  EXPECT_EQ(layout.sample_bytes, together.sample_bytes);
}

TEST(BatchLayout, SharesEveryExampleOnceInOrderAndWithinTheRows) {
  for (std::int64_t global : {1, 7, 10, 64}) {
    for (int replicas : {1, 2, 3, 8}) {
      const BatchLayout layout(kFields, global, ReplicaRange::alone(replicas));
      for (std::int64_t examples = 0; examples <= global; ++examples) {
        EXPECT_EQ(layout.first_of(examples, 0), 0);
        EXPECT_EQ(layout.first_of(examples, replicas), examples);
        for (int r = 0; r < replicas; ++r) {
          const std::int64_t rows = layout.first_of(examples, r + 1) - layout.first_of(examples, r);
          EXPECT_GE(rows, examples / replicas);
          EXPECT_LE(rows, layout.local_rows);
        }
      }
    }
  }
}

// The parts of several loaders are the whole, each with the rows that its replicas have there.
TEST(BatchLayout, DividesAWorldAmongLoaders) {
  const BatchLayout whole(kFields, 37, ReplicaRange::alone(8));
  for (std::int64_t examples = 0; examples <= 37; ++examples) {
    for (int first = 0, local = 1; first < 8; first += local, local = first == 1 ? 4 : 3) {
      const BatchLayout part(kFields, 37, {.first = first, .local = local, .world = 8});
      EXPECT_EQ(part.local_rows, whole.local_rows);
      EXPECT_EQ(part.examples_before(examples), whole.first_of(examples, first));
      for (int r = 0; r <= local; ++r) {
        EXPECT_EQ(part.examples_before(examples) + part.first_of(examples, r),
                  whole.first_of(examples, first + r));
      }
    }
  }
}

}  // namespace
}  // namespace headrace::test
