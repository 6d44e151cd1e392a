// NumPy's arrays: headers, element types, orders, and the three places where they lie.
#include "headrace/pipeline/sources/arrays/npy_header.h"
#include "headrace/tests/pipeline/property.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/support/archives.h"

namespace headrace::test {
namespace {

Bytes counting_bytes(std::size_t size, unsigned first = 0) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

template <typename Value>
Bytes bytes_of_array(const std::vector<Value>& values, bool big_endian = false) {
  Bytes bytes;
  for (const Value& value : values) {
    Bytes one = to_bytes(std::as_bytes(std::span(&value, 1)));
    if (big_endian) std::ranges::reverse(one);
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  return bytes;
}

template <typename Value>
std::vector<Value> values_of_field(const Source& source, std::size_t field = 0) {
  std::vector<Value> values;
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < source.info().records; ++i) {
    const std::span<const std::byte> bytes = source.read(i, scratch).fields[field];
    values.resize(values.size() + bytes.size() / sizeof(Value));
    std::memcpy(values.data() + values.size() - bytes.size() / sizeof(Value), bytes.data(), bytes.size());
  }
  return values;
}

// Keras's mnist.npz in small.
Bytes mnist(unsigned first = 0) {
  ZipBuilder zip;
  zip.add("x_test.npy", make_npy("|u1", "(2, 4, 5)", counting_bytes(40, 100)), true);
  zip.add("x_train.npy", make_npy("|u1", "(7, 4, 5)", counting_bytes(140, first)), true);
  zip.add("y_train.npy", make_npy("|u1", "(7,)", counting_bytes(7)));
  zip.add("y_test.npy", make_npy("|u1", "(2,)", counting_bytes(2)));
  return zip.finish();
}

struct NpzMaker {
  static constexpr std::uint64_t kRecords = 7;
  static constexpr bool kResident = true;

  NpzMaker() { folder_.write("mnist.npz", mnist()); }
  const TempFolder& folder() const { return folder_; }
  std::filesystem::path root() const { return folder_ / "mnist.npz"; }
  std::vector<std::filesystem::path> files() const { return {root()}; }
  SourcePtr open() const { return open_at(root()); }
  SourcePtr open_at(const std::filesystem::path& path) const { return numpy_arrays(path); }
  void change() { folder_.write("mnist.npz", mnist(1)); }

 private:
  TempFolder folder_;
};

// Read by position: more than memory_limit.
struct NpyMaker {
  static constexpr std::uint64_t kRecords = 7;
  static constexpr bool kResident = false;

  NpyMaker() {
    folder_.write("data/x_train.npy", make_npy("|u1", "(7, 4, 5)", counting_bytes(140)));
    folder_.write("data/y_train.npy", make_npy(">i2", "(7,)", counting_bytes(14)));
  }
  std::filesystem::path root() const { return folder_ / "data"; }
  std::vector<std::filesystem::path> files() const {
    return {folder_ / "data/x_train.npy", folder_ / "data/y_train.npy"};
  }
  SourcePtr open() const { return open_at(root()); }
  SourcePtr open_at(const std::filesystem::path& path) const { return numpy_arrays(path, {.memory_limit = 100}); }
  void change() { folder_.write("data/y_train.npy", make_npy(">i4", "(7,)", counting_bytes(28))); }

 private:
  TempFolder folder_;
};

using NumpyMakers = ::testing::Types<NpzMaker, NpyMaker>;
INSTANTIATE_TYPED_TEST_SUITE_P(Numpy, SourceSuite, NumpyMakers);
INSTANTIATE_TYPED_TEST_SUITE_P(Numpy, FileSourceSuite, NumpyMakers);

TEST(NumpyTest, ReadsKerasMnist) {
  const NpzMaker maker;
  const SourcePtr train = open_source(maker.root(), Split::kTrain), test = open_source(maker.root(), Split::kTest);
  EXPECT_EQ(train->info().fields[0], (Field{.name = "image", .dtype = DType::kU8, .shape = {4, 5, 1}}));
  EXPECT_EQ(train->info().fields[1], (Field{.name = "label", .dtype = DType::kI64, .shape = {}}));
  EXPECT_EQ(values_of_field<std::uint8_t>(*test).front(), 100);
  EXPECT_EQ(values_of_field<std::int64_t>(*train, 1), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(test->info().records, 2U);
}

TEST(NumpyTest, GivesOneStreamFromMemoryAndByPosition) {
  const NpyMaker maker;
  EXPECT_EQ(read_all(*maker.open()), read_all(*numpy_arrays(maker.root())));
  EXPECT_TRUE(open_source(maker.root(), Split::kTrain)->info().resident);
  expect_one_stream(Dataset::from(maker.open()).shuffle().batch({.global_batch = 3}));
}

TEST(NumpyTest, ConvertsEveryElementTypeInBothOrders) {
  TempFolder folder;
  for (const bool big : {false, true}) {
    for (const std::uint64_t limit : {std::uint64_t{1} << 20, std::uint64_t{1}}) {  // in memory; by position
      const auto open = [&](const std::string& type, const Bytes& data) {
        return numpy_arrays(folder.write(type + ".npy", make_npy((big ? ">" : "<") + type, "(2,)", data)),
                            {.memory_limit = limit});
      };
      const auto expect_i32 = [&](const SourcePtr& source, const std::vector<std::int32_t>& values) {
        EXPECT_EQ(source->info().fields[0].dtype, DType::kI32);
        EXPECT_EQ(values_of_field<std::int32_t>(*source), values);
      };
      const auto expect_i64 = [&](const SourcePtr& source, const std::vector<std::int64_t>& values) {
        EXPECT_EQ(source->info().fields[0].dtype, DType::kI64);
        EXPECT_EQ(values_of_field<std::int64_t>(*source), values);
      };
      expect_i32(open("i1", bytes_of_array<std::int8_t>({-3, 127})), {-3, 127});
      expect_i32(open("i2", bytes_of_array<std::int16_t>({-300, 7}, big)), {-300, 7});
      expect_i32(open("u2", bytes_of_array<std::uint16_t>({65535, 7}, big)), {65535, 7});
      expect_i32(open("i4", bytes_of_array<std::int32_t>({-70000, 7}, big)), {-70000, 7});
      expect_i64(open("u4", bytes_of_array<std::uint32_t>({4000000000U, 7}, big)), {4000000000, 7});
      expect_i64(open("i8", bytes_of_array<std::int64_t>({-5000000000, 7}, big)), {-5000000000, 7});
      expect_i64(open("u8", bytes_of_array<std::uint64_t>({1ULL << 62, 7}, big)), {1LL << 62, 7});
      const SourcePtr flags = open("b1", counting_bytes(2)),
                      single = open("f4", bytes_of_array<float>({1.5F, -0.1F}, big)),
                      twice = open("f8", bytes_of_array<double>({1.5, -0.1}, big)),
                      half = open("f2", bytes_of_array<std::uint16_t>({0x3C00, 0x1234}, big));
      EXPECT_EQ(values_of_field<std::uint8_t>(*flags), (std::vector<std::uint8_t>{0, 1}));
      EXPECT_EQ(values_of_field<float>(*single), (std::vector<float>{1.5F, -0.1F}));
      EXPECT_EQ(values_of_field<float>(*twice), (std::vector<float>{1.5F, -0.1F}));
      EXPECT_EQ(half->info().fields[0].dtype, DType::kF16);
      EXPECT_EQ(values_of_field<std::uint16_t>(*half), (std::vector<std::uint16_t>{0x3C00, 0x1234}));
    }
  }
}

TEST(NumpyTest, TurnsFortransOrder) {
  TempFolder folder;
  // a[i, j, k] = 100 i + 10 j + k of shape (3, 2, 4), as Fortran lays it out.
  std::vector<std::int32_t> laid_out, wanted;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 2; ++j) {
      for (int i = 0; i < 3; ++i) laid_out.push_back(100 * i + 10 * j + k);
    }
  }
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 2; ++j) {
      for (int k = 0; k < 4; ++k) wanted.push_back(100 * i + 10 * j + k);
    }
  }
  const auto path = folder.write("v.npy", make_npy("<i4", "(3, 2, 4)", bytes_of_array(laid_out), true));
  EXPECT_EQ(values_of_field<std::int32_t>(*numpy_arrays(path)), wanted);
  const DataError error = error_of<DataError>([&] { numpy_arrays(path, {.memory_limit = 100}); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error.what(), HasSubstr("numpy.ascontiguousarray"));
}

std::string error_of_npy(const Bytes& file, Split split = Split::kTrain) {
  const TempFolder folder;
  return message_of<Error>([&] { open_source(folder.write("v.npy", file), split); });
}

TEST(NumpyTest, NamesFieldsAndSplits) {
  const auto npz = [](std::initializer_list<const char*> names, const std::string& shape = "(2, 3)") {
    ZipBuilder zip;
    for (const char* name : names) zip.add(std::string(name) + ".npy", make_npy("<f4", shape, Bytes(24)));
    return zip.finish();
  };
  const auto fields = [&](std::initializer_list<const char*> names, Split split = Split::kTrain) {
    const TempFolder folder;
    std::string text;
    const SourcePtr source = open_source(folder.write("v.npz", npz(names)), split);
    for (const Field& field : source->info().fields) {
      text += (text.empty() ? "" : " ") + field.name;
    }
    return text;
  };
  EXPECT_EQ(fields({"labels", "images"}), "image label");
  EXPECT_EQ(fields({"y", "X"}), "image label");
  EXPECT_EQ(fields({"arr_0", "depth"}), "arr_0 depth");
  EXPECT_EQ(fields({"train_images", "val_images", "train_labels", "val_labels"}, Split::kTest), "image label");
  EXPECT_EQ(fields({"x_train", "mask_train", "x_test"}), "image mask");
  EXPECT_EQ(fields({"a", "b", "c", "d", "e"}), "a b c d e");
  EXPECT_THAT(error_of_npy(npz({"x", "y"}), Split::kTest),
              HasSubstr("has no arrays of the test split; it has x, y"));
  EXPECT_THAT(error_of_npy(make_npy("<f4", "(2, 3)", Bytes(24)), Split::kTest),
              HasSubstr("one file has no two splits"));
  EXPECT_THAT(error_of_npy(ZipBuilder()
                               .add("x.npy", make_npy("|u1", "(2, 3)", Bytes(6)))
                               .add("y.npy", make_npy("|u1", "(3,)", Bytes(3)))
                               .finish()),
              HasSubstr("x.npy has 2, y.npy has 3"));
}

TEST(NumpyTest, SaysWhatItDoesNotRead) {
  const auto of_type = [](const std::string& type) { return error_of_npy(make_npy(type, "(2,)", Bytes(32))); };
  EXPECT_THAT(of_type("|O"), HasSubstr("holds Python objects"));
  EXPECT_THAT(of_type("<c16"), HasSubstr("its elements are of type '<c16'"));
  EXPECT_THAT(of_type("<U4"), HasSubstr("its elements are of type '<U4'"));
  EXPECT_THAT(of_type("<f16"), HasSubstr("its elements are of type '<f16'"));
  EXPECT_THAT(of_type("x"), HasSubstr("its header is not that of a NumPy array"));
  EXPECT_THAT(error_of_npy(make_npy("<f4", "()", Bytes(4))), HasSubstr("its first axis must count the records"));
  EXPECT_THAT(error_of_npy(make_npy("|u1", "(1, 1, 1, 1, 1, 1, 1)", Bytes(1))), HasSubstr("has 7 axes"));
  EXPECT_THAT(error_of_npy(make_npy("<f4", "(2,)", Bytes(9))), HasSubstr("has 1 bytes left over"));
  EXPECT_THAT(error_of_npy(make_npy("<f4", "(3,)", Bytes(11))), HasSubstr("it was cut off"));
  EXPECT_THAT(error_of_npy(make_npy("<f4", "(4611686018427387904, 4)", Bytes(11))), HasSubstr("promises more"));
  EXPECT_THAT(error_of_npy(make_npy("<f4", "(-1,)", Bytes(11))), HasSubstr("its header is not"));
  EXPECT_THAT(error_of_npy(make_npy("<u8", "(1,)", Bytes(8, std::byte{0xFF}))), HasSubstr("too large for int64"));
}

// A .npy file of a structured array, as numpy.save writes it.
Bytes structured_npy(const std::string& fields, const std::string& shape, const Bytes& data) {
  std::string header = "{'descr': [" + fields + "], 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize((10 + header.size()) / 64 * 64 + 64 - 11, ' ');
  header += '\n';
  Bytes file = to_bytes(std::string("\x93NUMPY\x01", 7) + '\0');
  file.push_back(static_cast<std::byte>(header.size() % 256));
  file.push_back(static_cast<std::byte>(header.size() / 256));
  const Bytes text = to_bytes(header);
  file.insert(file.end(), text.begin(), text.end());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

// Three elements of a double, four bytes between, a big-endian box, a label and a text: 30 bytes each.
const char* const kStructured =
    "('score', '<f8'), ('', '|V4'), ('box', '>i2', (2, 2)), ('y', '|u1'), ('name', '|S5'), ('x', '<f4')";
Bytes structured_data() {
  Bytes data;
  for (int i = 0; i < 3; ++i) {
    const double score = 0.5 + i;
    const float x = 0.25F + static_cast<float>(i);
    const auto add = [&](const auto& value) {
      const Bytes bytes = to_bytes(std::as_bytes(std::span(&value, 1)));
      data.insert(data.end(), bytes.begin(), bytes.end());
    };
    add(score);
    add(std::int32_t{-1});
    for (int n = 0; n < 4; ++n) add(static_cast<std::uint16_t>((i * 4 + n) << 8));
    add(static_cast<std::uint8_t>(i + 7));
    const Bytes name = to_bytes(std::string(i == 1 ? "ab\0\0\0" : "abcde", 5));
    data.insert(data.end(), name.begin(), name.end());
    add(x);
  }
  return data;
}

void expect_structured(const Source& source) {
  ASSERT_EQ(source.info().records, 3U);
  ASSERT_EQ(source.info().fields.size(), 5U);
  EXPECT_EQ(source.info().fields[0], (Field{.name = "image", .dtype = DType::kF32, .shape = {}}));
  EXPECT_EQ(source.info().fields[1], (Field{.name = "label", .dtype = DType::kI64, .shape = {}}));
  EXPECT_EQ(source.info().fields[2].name, "score");
  EXPECT_EQ(source.info().fields[3], (Field{.name = "box", .dtype = DType::kI32, .shape = {2, 2}}));
  EXPECT_EQ(source.info().fields[4], (Field{.name = "name", .dtype = DType::kU8, .shape = {5}}));
  EXPECT_EQ(values_of_field<float>(source, 0), (std::vector<float>{0.25F, 1.25F, 2.25F}));
  EXPECT_EQ(values_of_field<std::int64_t>(source, 1), (std::vector<std::int64_t>{7, 8, 9}));
  EXPECT_EQ(values_of_field<float>(source, 2), (std::vector<float>{0.5F, 1.5F, 2.5F}));
  EXPECT_EQ(values_of_field<std::int32_t>(source, 3),
            (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  std::vector<std::byte> scratch;
  EXPECT_EQ(to_bytes(source.read(1, scratch).fields[4]), to_bytes(std::string("ab\0\0\0", 5)));
}

TEST(NumpyTest, TheMembersOfAStructuredArrayAreFields) {
  const TempFolder folder;
  const Bytes file = structured_npy(kStructured, "(3,)", structured_data());
  const auto path = folder.write("records.npy", file);
  expect_structured(*open_source(path, Split::kTrain));
  const SourcePtr by_position = numpy_arrays(path, {.memory_limit = 16});
  EXPECT_FALSE(by_position->info().resident);
  expect_structured(*by_position);
  ZipBuilder zip;
  zip.add("records.npy", file, true);
  expect_structured(*open_source(folder.write("records.npz", zip.finish()), Split::kTrain));
}

TEST(NumpyTest, RefusesStructuredArraysThatItDoesNotRead) {
  const auto of = [](const std::string& fields) {
    return error_of_npy(structured_npy(fields, "(2,)", Bytes(64)));
  };
  EXPECT_THAT(of("('a', [('b', '<f4')])"), HasSubstr("field 'a' of its elements has fields itself"));
  EXPECT_THAT(of("(('title', 'a'), '<f4')"), HasSubstr("has a title"));
  EXPECT_THAT(of("('a', '<U4')"), HasSubstr("of type '<U4'"));
  EXPECT_THAT(of("('a', '<f4', (0,))"), HasSubstr("its header is not"));
  EXPECT_THAT(of("('a', '|S99999999999999999999')"), HasSubstr("its header is not"));
  EXPECT_THAT(of("('a', '<f4', (1, 1, 1, 1, 1, 1))"), HasSubstr("has 6 axes"));
  EXPECT_THAT(of("('', '|V4')"), HasSubstr("its elements have no fields"));
  EXPECT_THAT(error_of_npy(structured_npy("('a', '<f4'), ('a', '<f4')", "(2,)", Bytes(16))),
              HasSubstr("has two fields named a"));
  EXPECT_THAT(of("('a', '<i4')"), HasSubstr("has 56 bytes left over"));
  EXPECT_THAT(of("('a', '<f8', (5,))"), HasSubstr("it was cut off"));
  EXPECT_THAT(error_of_npy(structured_npy("('a', '<f4')", "(2, 1)", Bytes(8))),
              HasSubstr("a structured array of 2 axes"));
}

TEST(NumpyTest, EveryTruncationIsAnError) {
  const TempFolder folder;
  for (const Bytes& whole :
       {make_npy("<f4", "(3, 2)", Bytes(24)), mnist(), structured_npy(kStructured, "(3,)", structured_data())}) {
    const auto path = folder.write("v.npy", whole);
    for (std::size_t size = whole.size(); size-- > 0;) {
      std::filesystem::resize_file(path, size);
      EXPECT_THROW(open_source(path, Split::kTrain), DataError) << size;
    }
  }
}

TEST(NumpyTest, EveryFlippedBitOfAnArchiveIsFoundOrHarmless) {
  const TempFolder folder;
  const Bytes whole = mnist();
  const auto path = folder.write("v.npz", whole);
  const auto before = read_all(*numpy_arrays(path));
  std::size_t found = 0;
  for (std::size_t bit = 0; bit < whole.size() * 8; bit += 7) {
    TempFolder::patch(path, bit / 8, whole[bit / 8] ^ static_cast<std::byte>(1U << bit % 8));
    try {
      const SourcePtr source = numpy_arrays(path);
      const Fields& fields = source->info().fields;
      const bool is_named_otherwise = fields.size() < 2 || fields[0].name != "image" || fields[1].name != "label";
      EXPECT_TRUE(is_named_otherwise || read_all(*source) == before) << bit;
    } catch (const Error&) {
      ++found;
    }
    TempFolder::patch(path, bit / 8, whole[bit / 8]);
  }
  EXPECT_GT(found, 100U);
}

}  // namespace
}  // namespace headrace::test
