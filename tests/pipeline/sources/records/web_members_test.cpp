// Members of a WebDataset's samples as fields: ColumnOptions for archives.
#include <sys/stat.h>

#include "headrace/pipeline/sources.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/pipeline/sources/packing.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

Bytes floats(std::initializer_list<float> values) {
  return to_bytes(std::as_bytes(std::span(values.begin(), values.size())));
}

template <typename Value>
std::vector<Value> member_values(std::span<const std::byte> bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Bytes photo_of(std::size_t i) { return encode_jpeg(make_picture(8, 9, 3, i)); }
Bytes mask_of(std::size_t i) { return encode_png(make_picture(8, 9, 1, i)); }

// A caption, a mask, an array, and JSON with boxes, as many as the sample's number, and a score.
TarBuilder& add_rich(TarBuilder& tar, std::size_t i, bool with_label = true) {
  const std::string key = "00" + std::to_string(i);
  std::string boxes;
  for (std::size_t box = 0; box < i; ++box) {
    boxes += (box == 0 ? "" : ",") + std::string("[1,2,3.5,") + std::to_string(box) + "]";
  }
  tar.add(key + ".txt", to_bytes("caption " + std::to_string(i)));
  tar.add(key + ".jpg", photo_of(i));
  tar.add(key + ".seg.png", mask_of(i));
  if (with_label) tar.add(key + ".cls", to_bytes(std::to_string(i % 2)));
  tar.add(key + ".json", to_bytes("{\"boxes\": [" + boxes + "], \"meta\": {\"score\": " + std::to_string(i) +
                                  ", \"who\": \"me\"}, \"kind\": \"" + (i % 2 == 0 ? "b" : "a") + "\"}"));
  tar.add(key + ".npy", make_npy("<f4", "(2,)", floats({static_cast<float>(i), 0.5F}), false));
  return tar;
}

Bytes rich_tar(std::size_t count, bool with_label = true) {
  TarBuilder tar;
  for (std::size_t i = 0; i < count; ++i) add_rich(tar, i, with_label);
  return tar.finish();
}

const ColumnOptions kEveryMember{.columns = {"caption=txt", "seg=seg.png:mask", "seg.png", "npy",
                                             "boxes=json.boxes:list", "json.meta.score",
                                             "who=json.meta.who:text"}};

TEST(WebMembersTest, BecomeFields) {
  for (const Packing packing : {Packing::kPlain, Packing::kZstd}) {
    const TempFolder folder;
    const auto path = folder.write("a.tar", pack(rich_tar(4), packing));
    const SourcePtr source = open_source(path, Split::kTrain, {.columns = kEveryMember});
    const Fields& fields = source->info().fields;
    ASSERT_EQ(fields.size(), 9U);
    EXPECT_EQ(fields[2], (Field{.name = "caption", .dtype = DType::kU8, .shape = {Shape::kDynamic}}));
    EXPECT_EQ(fields[3].encoding, Encoding::kImage);
    EXPECT_EQ(fields[3].shape, (Shape{Shape::kDynamic, Shape::kDynamic, 1}));
    EXPECT_EQ(fields[4].shape, (Shape{Shape::kDynamic, Shape::kDynamic, 3}));
    EXPECT_EQ(fields[5], (Field{.name = "npy", .dtype = DType::kF32, .shape = {2}}));
    EXPECT_EQ(fields[6], (Field{.name = "boxes", .dtype = DType::kF32, .shape = {Shape::kDynamic, 4}}));
    EXPECT_EQ(fields[7], (Field{.name = "json.meta.score", .dtype = DType::kI64, .shape = {}}));
    EXPECT_EQ(fields[8].name, "who");
    std::vector<std::byte> scratch;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const RecordView view = source->read(i, scratch);
      EXPECT_EQ(to_bytes(view.fields[0]), photo_of(i));
      EXPECT_EQ(member_values<std::int64_t>(view.fields[1]).front(), static_cast<std::int64_t>(i % 2));
      EXPECT_EQ(to_bytes(view.fields[2]), to_bytes("caption " + std::to_string(i)));
      EXPECT_EQ(to_bytes(view.fields[3]), mask_of(i));
      EXPECT_EQ(to_bytes(view.fields[4]), mask_of(i));
      EXPECT_EQ(to_bytes(view.fields[5]), floats({static_cast<float>(i), 0.5F}));
      ASSERT_EQ(view.fields[6].size(), i * 16);
      if (i > 0) {
        EXPECT_EQ(member_values<float>(view.fields[6]).back(), static_cast<float>(i - 1));
      }
      EXPECT_EQ(member_values<std::int64_t>(view.fields[7]).front(), static_cast<std::int64_t>(i));
      EXPECT_EQ(to_bytes(view.fields[8]), to_bytes("me"));
    }
    EXPECT_EQ(describe(source->info().columns), "");
    EXPECT_EQ(describe(web_dataset(path)->info().columns),
              "left out of each record: json (JSON), npy (an array), seg.png (an image), txt (text)");
  }
}

TEST(WebMembersTest, TextsAndImagesOfACompressedArchiveStayInMemory) {
  const TempFolder folder;
  const auto path = folder.write("a.tar.zst", zstd(rich_tar(2)));
  const SourcePtr bytes = web_dataset(path, {.members = {"txt", "seg.png"}});
  EXPECT_TRUE(bytes->info().resident);
  std::vector<std::byte> scratch;
  EXPECT_EQ(to_bytes(bytes->read(1, scratch).fields[2]), to_bytes("caption 1"));
  EXPECT_TRUE(scratch.empty()) << "read() of what is resident uses none";
  EXPECT_FALSE(web_dataset(path, {.members = {"txt", "npy"}})->info().resident);
}

TEST(WebMembersTest, ChangeTheFingerprintAndOnlyWhereTheyAreTaken) {
  const TempFolder folder;
  const auto path = folder.write("a.tar", rich_tar(2));
  const auto fingerprint = [&](const std::filesystem::path& file, std::vector<std::string> members) {
    return web_dataset(file, {.members = std::move(members)})->info().fingerprint;
  };
  EXPECT_NE(fingerprint(path, {}), fingerprint(path, {"txt"}));
  EXPECT_NE(fingerprint(path, {"txt"}), fingerprint(path, {"text=txt"}));
  TarBuilder other;
  add_rich(other, 0)
      .add("001.jpg", photo_of(1))
      .add("001.cls", to_bytes("1"))
      .add("001.txt", to_bytes("longer caption"));
  EXPECT_NE(fingerprint(folder.write("b.tar", other.finish()), {"txt"}), fingerprint(path, {"txt"}));
}

TEST(WebMembersTest, ASampleWithoutAChosenMemberIsABadRecord) {
  for (const Packing packing : {Packing::kPlain, Packing::kZstd}) {
    const TempFolder folder;
    TarBuilder tar;
    add_rich(tar, 0).add("x.jpg", photo_of(1)).add("x.cls", to_bytes("1"));
    folder.write("shards/a.tar", pack(rich_tar(1), packing));
    folder.write("shards/b.tar", pack(tar.finish(), packing));
    const SourcePtr source =
        open_source(folder / "shards", Split::kTrain, {.columns = {.columns = {"seg.png", "npy"}}});
    std::vector<std::byte> scratch;
    EXPECT_NO_THROW(source->read(1, scratch));
    const DataError error = error_of<DataError>([&] { source->read(2, scratch); });
    EXPECT_THAT(error.what(), HasSubstr("b.tar/x.jpg: there is no member 'seg.png' beside it"));
    EXPECT_EQ(error.location().record, 2U);
    EXPECT_EQ(error.location().offset, source->offset(2));
  }
}

TEST(WebMembersTest, AMemberOfAnotherFormIsABadRecord) {
  const auto fault_in = [](const std::string& member, const std::string& extension, const Bytes& bytes) {
    TarBuilder tar;
    for (std::size_t i = 0; i < 256; ++i) {
      const std::string key = "k" + std::to_string(i);
      tar.add(key + ".jpg", photo_of(0)).add(key + ".cls", to_bytes("1")).add(key + ".num", to_bytes("1 2"));
      tar.add(key + ".npy", make_npy("<i4", "(1,)", to_bytes(std::string(4, '\1')), false));
      tar.add(key + ".json", to_bytes("{\"n\": 3, \"s\": [1, 2]}"));
    }
    tar.add("z.jpg", photo_of(0)).add("z.cls", to_bytes("1")).add("z." + extension, bytes);
    const TempFolder folder;
    const SourcePtr source = web_dataset(folder.write("a.tar", tar.finish()), {.members = {member}});
    std::vector<std::byte> scratch;
    try {
      source->read(256, scratch);
      return std::string();
    } catch (const DataError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(fault_in("num", "num", to_bytes("1 x")), HasSubstr("member 'num' holds 'x', which is no number"));
  EXPECT_THAT(fault_in("num", "num", to_bytes("1 2 3")),
              HasSubstr("member 'num' has the shape (3,) where the first samples have (2,)"));
  EXPECT_THAT(fault_in("num", "num", to_bytes("1 2.5")), HasSubstr("holds a number that is no integer"));
  EXPECT_EQ(fault_in("num", "num", to_bytes("+1,\t2\n")), "");
  EXPECT_EQ(fault_in("num:list", "num", to_bytes("1 2 3")), "");
  EXPECT_THAT(fault_in("npy", "npy", make_npy("<f4", "(1,)", to_bytes(std::string(4, '\1')), false)),
              HasSubstr("member 'npy' holds float32 where the first samples hold int32"));
  EXPECT_THAT(fault_in("npy", "npy", to_bytes("no array")), HasSubstr("is no .npy file"));
  EXPECT_THAT(fault_in("json.n", "json", to_bytes("{\"n\": \"x\"}")),
              HasSubstr("member 'json.n' holds a value of type string, no number"));
  EXPECT_THAT(fault_in("json.n", "json", to_bytes("{\"m\": 1}")), HasSubstr("member 'json' has no value 'n'"));
  EXPECT_THAT(fault_in("json.n", "json", to_bytes("{\"n\": 1")), HasSubstr("member 'json' is no JSON"));
  EXPECT_THAT(fault_in("json.s", "json", to_bytes("{\"s\": [1, [2]]}")), HasSubstr("arrays of different lengths"));
}

std::string error_with(const Bytes& tar, const ColumnOptions& columns) {
  const TempFolder folder;
  return message_of<Error>([&] { open_source(folder.write("a.tar", tar), Split::kTrain, {.columns = columns}); });
}

TEST(WebMembersTest, RefusesWhatCannotBeAField) {
  const Bytes tar = rich_tar(3);
  const auto with = [&](const std::string& member) { return error_with(tar, {.columns = {member}}); };
  EXPECT_THAT(with("segg.png"),
              HasSubstr("no member 'segg.png' in its first samples; there are txt, jpg, seg.png, "
                        "cls, json, npy: did you mean 'seg.png'?"));
  EXPECT_THAT(with("json"),
              HasSubstr("the member 'json' is no number: it holds JSON (say 'json:text', or name a key in it: "
                        "'json.KEY')"));
  EXPECT_EQ(with("json:text"), "");
  EXPECT_THAT(with("json.kind"), HasSubstr("member 'json.kind' holds a value of type string, no number"));
  EXPECT_THAT(with("json:class"), HasSubstr("the member 'json' is no class: it holds JSON"));
  EXPECT_THAT(with("seg.png:class"),
              HasSubstr("is no class: it holds an image (say 'seg.png' or 'seg.png:text' or 'seg.png:mask')"));
  EXPECT_THAT(with("txt:mask"), HasSubstr("the member 'txt' is no mask: it holds text or numbers"));
  EXPECT_THAT(with("txt:txet"), HasSubstr("'txet' is no type of one: did you mean 'text'?"));
  EXPECT_THAT(with("label=txt"), HasSubstr("a field is called 'label' already"));
  EXPECT_THAT(with("json.meta.score:list"), HasSubstr("holds one number, no list"));
  TarBuilder mixed;
  add_rich(mixed, 1).add("b.jpg", photo_of(1)).add("b.cls", to_bytes("1"));
  mixed.add("b.npy", make_npy("<f4", "(1, 2)", floats({1, 2}), false));
  EXPECT_THAT(error_with(mixed.finish(), {.columns = {"npy"}}),
              HasSubstr("the member 'npy' has the shape (2,) in one sample and (1, 2) in another"));
}

// Samples with a breed in JSON and one in text: the last one's is found only where all samples are read.
TarBuilder breeds(std::uint64_t count) {
  TarBuilder tar;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key = "a" + std::to_string(1000 + i), breed = i + 1 == count ? "akita"
                                                                    : i % 2 == 0   ? "pug"
                                                                                   : "boxer";
    tar.add(key + ".jpg", photo_of(1))
        .add(key + ".cls", to_bytes("0"))
        .add(key + ".txt", to_bytes(" " + breed + "\n"));
    tar.add(key + ".json", to_bytes("{\"age\": " + std::to_string(i % 11) + "}"));
  }
  return tar;
}

TEST(WebMembersTest, NumberClassesOfAllSamples) {
  constexpr std::uint64_t kCount = 300;
  const TempFolder folder;
  const auto path = folder.write("a.tar", breeds(kCount).finish());
  const SourcePtr source = web_dataset(path, {.members = {"txt:class", "age=json.age:class"}});
  ASSERT_EQ(source->info().fields.size(), 4U);
  EXPECT_EQ(source->info().fields[2], (Field{.name = "txt", .dtype = DType::kI64, .shape = {}}));
  std::vector<std::byte> scratch;
  for (const auto& [record, breed] : {std::pair{0U, 2}, std::pair{1U, 1}, std::pair{299U, 0}}) {
    EXPECT_EQ(member_values<std::int64_t>(source->read(record, scratch).fields[2]),
              std::vector<std::int64_t>{breed});
  }
  EXPECT_EQ(member_values<std::int64_t>(source->read(10, scratch).fields[3]), std::vector<std::int64_t>{10})
      << "numbers in numeric order";
  const auto shorter = folder.write("b.tar", breeds(kCount - 1).finish());
  EXPECT_NE(web_dataset(shorter, {.members = {"txt:class"}})->info().fingerprint, source->info().fingerprint);
}

TEST(WebMembersTest, TakeLabelsFromAnyMember) {
  const TempFolder folder;
  const auto path = folder.write("a.tar", rich_tar(4));
  const auto opened = [&](const ColumnOptions& columns) {
    return open_source(path, Split::kTrain, {.columns = columns});
  };
  EXPECT_EQ(label_of(*opened({.label_column = "json.meta.score"}), 3), 3);
  const SourcePtr kinds = opened({.label_column = "json.kind", .label_type = LabelType::kClass});
  EXPECT_EQ(kinds->info().classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(label_of(*kinds, 0), 1);
  EXPECT_EQ(kinds->label(1), 0);
  const SourcePtr numbers = opened({.label_column = "json.meta.score", .label_type = LabelType::kNumber});
  EXPECT_EQ(numbers->info().fields[1].dtype, DType::kF32);
  std::vector<std::byte> scratch;
  EXPECT_EQ(member_values<float>(numbers->read(2, scratch).fields[1]), std::vector<float>{2});
  EXPECT_THAT(error_with(rich_tar(2), {.label_column = "json"}),
              HasSubstr("the label 'json' is all of a JSON member"));
  EXPECT_THAT(error_with(rich_tar(2), {.label_column = "json.nothing"}),
              HasSubstr("none of its 2 samples can be used; the first: '000.json' has no integer \"nothing\""));
}

TEST(WebMembersTest, TakeAnotherImage) {
  const TempFolder folder;
  const auto path = folder.write("a.tar", rich_tar(2));
  const SourcePtr source =
      open_source(path, Split::kTrain, {.columns = {.image_column = "seg.png", .columns = {"jpg"}}});
  std::vector<std::byte> scratch;
  const RecordView view = source->read(1, scratch);
  EXPECT_EQ(to_bytes(view.fields[0]), mask_of(1));
  EXPECT_EQ(to_bytes(view.fields[2]), photo_of(1));
  EXPECT_EQ(source->describe(1), "001.seg.png");
}

TEST(WebMembersTest, NeedNoLabelWhereNoSampleHasOne) {
  const TempFolder folder;
  const auto path = folder.write("a.tar", rich_tar(3, /*with_label=*/false));
  const SourcePtr source = open_source(path, Split::kTrain, {.columns = {.columns = {"txt"}}});
  ASSERT_EQ(source->info().fields.size(), 2U);
  EXPECT_EQ(source->label(1), std::nullopt);
  std::vector<std::byte> scratch;
  EXPECT_EQ(to_bytes(source->read(1, scratch).fields[1]), to_bytes("caption 1"));
  TarBuilder one_label;
  add_rich(add_rich(one_label, 0, false), 1, true);
  const SourcePtr some = web_dataset(folder.write("b.tar", one_label.finish()), {.members = {"txt"}});
  EXPECT_EQ(some->info().fields.size(), 3U);
  EXPECT_THROW(some->read(0, scratch), DataError);
  EXPECT_NO_THROW(some->read(1, scratch));
}

TEST(WebMembersTest, AreNotChosenInAPipe) {
  const TempFolder folder;
  const std::filesystem::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(
      error_of<ConfigError>([&] { open_source(pipe, Split::kTrain, {.columns = {.columns = {"txt"}}}); }).what(),
      HasSubstr("members cannot be chosen in a pipe"));
}

}  // namespace
}  // namespace headrace::test
