// Files of tensors: what is written is read, and what is damaged is refused by name.
#include "headrace/train/records/tensor_file.h"
#include "headrace/devices/base/hash.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) * 0.25F - 3;
  return values;
}

// Of sizes that need padding, a scalar, one of several blocks, and one that needs none behind it.
struct WrittenTensors {
  std::vector<float> bias = ramp(10), scale = ramp(1), weights = ramp(600'000), even = ramp(16);

  std::vector<TensorToWrite> list() const {
    const auto tensor = [](const char* name, const Shape& shape, const std::vector<float>& values) {
      return TensorToWrite{.name = name, .shape = shape, .bytes = std::as_bytes(std::span(values))};
    };
    return {tensor("dense/bias", {10}, bias), tensor("scale", {}, scale),
            tensor("dense/weights", {600, 1000}, weights), tensor("even", {4, 4}, even)};
  }
};

const RecordTexts kTexts{{"history", R"({"loss":[0.5,0.25]})"}, {"format", R"({"version":1})"}};

std::filesystem::path write_tensors(const TempFolder& folder) {
  const WrittenTensors tensors;
  write_tensor_file(folder / "record", kTexts, tensors.list());
  return folder / "record";
}

std::string refusal_to_read(const std::filesystem::path& path) {
  try {
    const TensorFile file(path);
    for (const StoredTensor& tensor : file.tensors()) {
      std::vector<std::byte> bytes(tensor.bytes);
      file.read(tensor, bytes);
    }
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().source, path.string());
    EXPECT_NE(error.location().offset, DataLocation::kUnknown);
    return error.what();
  }
  return {};
}

TEST(TensorFile, GivesBackWhatWasWritten) {
  const TempFolder folder;
  const WrittenTensors tensors;
  const TensorFile file(write_tensors(folder));
  EXPECT_EQ(file.text("history"), kTexts.at("history"));
  EXPECT_EQ(file.tensors().size(), 4U);
  for (const TensorToWrite& wanted : tensors.list()) {
    const StoredTensor* found = file.find(wanted.name);
    ASSERT_NE(found, nullptr) << wanted.name;
    EXPECT_EQ(found->shape, wanted.shape);
    EXPECT_EQ(found->offset % kTensorAlignment, 0U) << wanted.name;
    std::vector<std::byte> bytes(found->bytes);
    file.read(*found, bytes);
    EXPECT_TRUE(std::ranges::equal(bytes, wanted.bytes)) << wanted.name;
  }
  EXPECT_EQ(file.tensors().front().offset % kPayloadAlignment, 0U);
  EXPECT_EQ(file.find("dense"), nullptr);
}

// As FORMAT.md has it, from the file's bytes alone.
TEST(TensorFile, BeginsAsItsPageSays) {
  const TempFolder folder;
  std::vector<std::byte> bytes = read_whole_file(write_tensors(folder));
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  EXPECT_EQ((8 + length) % kPayloadAlignment, 0U);
  std::string header(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  const std::string checksum = header.substr(37 - 8, 32);
  header.replace(37 - 8, 32, 32, '0');
  EXPECT_EQ(xxh3_128_hex(std::as_bytes(std::span(header))), checksum);
}

TEST(TensorFile, RefusesEveryTruncation) {
  const TempFolder folder;
  const std::vector<std::byte> whole = read_whole_file(write_tensors(folder));
  std::vector<std::size_t> lengths{0, 1, 7, 8, 9, 37, 38, 69, 70, 100, 4095, 4096, 4097, whole.size() - 1};
  for (std::size_t length = 5'000; length < whole.size(); length += whole.size() / 40) lengths.push_back(length);
  for (const std::size_t length : lengths) {
    const auto cut = folder.write("cut", std::span(whole).first(length));
    EXPECT_NE(refusal_to_read(cut), "") << length;
  }
  const auto cut = folder.write("cut", std::span(whole).first(whole.size() - 1'000'000));
  EXPECT_THAT(refusal_to_read(cut), HasSubstr("is cut short within tensor 'dense/weights'"));
}

TEST(TensorFile, RefusesEveryChangedByte) {
  const TempFolder folder;
  const std::vector<std::byte> whole = read_whole_file(write_tensors(folder));
  const auto path = folder.write("changed", whole);
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < 4096; at += 13) places.push_back(at);
  for (std::size_t at = 4096; at < whole.size() - 200; at += 301'117) places.push_back(at);
  for (const std::size_t at : places) {
    TempFolder::patch(path, at, whole[at] ^ std::byte{4});
    EXPECT_NE(refusal_to_read(path), "") << at;
    TempFolder::patch(path, at, whole[at]);
  }
  EXPECT_EQ(refusal_to_read(path), "");
}

TEST(TensorFile, NamesTheDamagedTensorAndTheOffsetOfItsBlock) {
  const TempFolder folder;
  const auto path = write_tensors(folder);
  const std::uint64_t offset = TensorFile(path).find("dense/weights")->offset;
  TempFolder::patch(path, offset + kTensorBlock + 5, std::byte{77});
  const std::string refusal = refusal_to_read(path);
  EXPECT_THAT(refusal, HasSubstr("tensor 'dense/weights'"));
  EXPECT_THAT(refusal, HasSubstr(std::to_string(offset + kTensorBlock)));
}

TEST(TensorFile, OfAnotherFormatIsSaidToBeOne) {
  const TempFolder folder;
  const std::string other = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(other.size());
  EXPECT_THAT(refusal_to_read(folder.write("other", bytes + other + "1234")),
              HasSubstr("is no record or checkpoint"));
  EXPECT_THAT(refusal_to_read(folder.write("text", std::string(64, 'x'))),
              HasSubstr("is no record or checkpoint"));
}

}  // namespace
}  // namespace headrace::test
