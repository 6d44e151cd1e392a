// What the commands say of the data: what was recognised, what was left out, what can be read in more than one
// way.
#include <nlohmann/json.hpp>

#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

// The folder's images, and beside them some that are no JPEG or PNG.
std::string write_images(const TempFolder& folder) {
  for (const auto& [name, bytes] : make_image_files()) folder.write("set/" + name, bytes);
  folder.write("set/train/cat/moving.gif", "x");
  folder.write("set/train/dog/new.webp", "x");
  folder.write("set/train/dog/newer.webp", "x");
  return folder.path().string();
}

const char* const kLeftOut = "3 files left out: 1 .gif, 2 .webp; Headrace reads JPEG and PNG\n";

TEST(DataCommands, CountAloudWhatTheyLeaveOut) {
  const TempFolder folder;
  const std::string data = write_images(folder);
  const CommandResult digest =
      headrace({"digest", "--pipeline", "jpeg-train", "--data", data, "--global-batch", "5"});
  EXPECT_EQ(digest.status, 0);
  const std::string reading = "headrace: reading " + data +
                              ": images in folders; train split: set/train/ (test: set/test/); " +
                              "class: folder 3 from the top; 3 classes: cat, dog, emu; " + kLeftOut;
  EXPECT_EQ(digest.reading, reading);
  const TempFolder out;
  const CommandResult convert = headrace({"convert", "--data", data, "--to", (out / "r").string()});
  EXPECT_EQ(convert.status, 0);
  EXPECT_EQ(convert.reading, reading);
}

TEST(DataCommands, TakeATarThroughAPipe) {
  TarBuilder tar;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::string key = std::to_string(i);
    tar.add(key + ".jpg", encode_jpeg(make_picture(40, 50, 3, i))).add(key + ".cls", to_bytes("1"));
  }
  const TempFolder folder;
  folder.write("it is.tar", tar.finish());
  const std::string run = std::string(HEADRACE_BINARY) +
                          " digest --pipeline jpeg-eval --split train --global-batch 3 --json - --data ";
  const CommandResult file = run_command({"sh", "-c", run + "'" + (folder / "it is.tar").string() + "'"});
  const CommandResult pipe =
      run_command({"sh", "-c", "cat '" + (folder / "it is.tar").string() + "' | " + run + "/dev/stdin"});
  EXPECT_EQ(pipe.status, 0) << pipe.errors;
  EXPECT_EQ(pipe.output, file.output);
  const CommandResult dash =
      run_command({"sh", "-c", "cat '" + (folder / "it is.tar").string() + "' | " + run + "-"});
  EXPECT_EQ(dash.status, 0) << dash.errors;
  EXPECT_EQ(dash.output, file.output);
  const CommandResult redirected =
      run_command({"sh", "-c", run + "- < '" + (folder / "it is.tar").string() + "'"});
  EXPECT_EQ(redirected.output, file.output);
}

TEST(DataCommands, TakeTheLayoutFromTheUser) {
  const TempFolder folder, out;
  for (const auto& [name, bytes] : make_image_files()) {
    if (name.starts_with("train/cat")) folder.write("a/" + name.substr(6), bytes);
  }
  const std::string data = folder.path().string(), to = (out / "r").string();
  const std::vector<std::string> digest = {"digest", "--pipeline", "jpeg-train", "--data", data};
  CommandResult result = headrace(digest);
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.errors,
            "headrace: " + data +
                ": all 4 images would be of one class, 'cat'; found a/cat/ 4 images\n"
                "  hint: where one class is meant, say --classes-at 2; else put the images of each class "
                "into a folder of their own\n");
  EXPECT_EQ(headrace({"convert", "--data", data, "--to", to}).status, 2);
  EXPECT_FALSE(std::filesystem::exists(to));
  std::vector<std::string> with = digest;
  with.insert(with.end(), {"--classes-at", "2"});
  EXPECT_EQ(headrace(with).status, 0);
  EXPECT_EQ(headrace({"convert", "--data", data, "--to", to, "--classes-at", "2"}).status, 0);
  result = headrace({"digest", "--pipeline", "jpeg-train", "--data", to, "--classes-at", "2"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.errors, "headrace: " + to +
                               ": holds records, whose classes and splits no folders name\n"
                               "  hint: leave out --classes-at, --train-folder and --test-folder\n");
}

TEST(DoctorCommand, SaysWhatTheDataAre) {
  const TempFolder folder;
  const std::string data = write_images(folder);
  folder.write("set/train/emu/9.jpg", "no image");
  const CommandResult result = headrace({"doctor", "--data", data});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("data     " + data + ": images in folders\n"));
  EXPECT_THAT(result.output,
              HasSubstr("read as  " + data + ": images in folders; test split: set/test/ (train: set/train/)"));
  EXPECT_THAT(result.output,
              HasSubstr("train    13 records in 3 classes; images of 12 x 9 to 12 pixels; 13 of them "
                        "examined, "));
  EXPECT_THAT(result.output, HasSubstr(" bytes: 1 bad\n"
                                       "              0 cat                              4\n"
                                       "              1 dog                              4\n"
                                       "              2 emu                              5\n"
                                       "     bad record 12: set/train/emu/9.jpg: decode: "));
  EXPECT_THAT(result.output,
              HasSubstr("test     3 records in 3 classes; images of 5 x 7 pixels; 3 of them examined, "));
  EXPECT_THAT(result.output, HasSubstr(kLeftOut));
}

TEST(DoctorCommand, SaysItInJson) {
  const TempFolder folder;
  const std::string data = write_images(folder);
  const CommandResult result = headrace({"doctor", "--data", data, "--json", "-", "--examine", "2"});
  ASSERT_EQ(result.status, 0) << result.errors;
  std::istringstream text(result.output);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].at("split"), "train");
  EXPECT_EQ(lines[0].at("found"), true);
  EXPECT_EQ(lines[0].at("format"), "images in folders");
  EXPECT_THAT(lines[0].at("reading").get<std::string>(), HasSubstr("train split: set/train/"));
  EXPECT_EQ(lines[0].at("records"), kTrainImages);
  EXPECT_EQ(lines[0].at("examined"), 2);
  EXPECT_EQ(lines[0].at("labelled"), kTrainImages);
  EXPECT_EQ(lines[0].at("classes").size(), 3U);
  EXPECT_EQ(lines[0].at("classes")[1], (nlohmann::json{{"label", 1}, {"name", "dog"}, {"records", 4}}));
  EXPECT_EQ(lines[0].at("left_out")[1], (nlohmann::json{{"what", ".webp"}, {"files", 2}}));
  EXPECT_EQ(lines[1].at("records"), kTestImages);
}

// Two images and a table of them, with a price to predict.
std::string write_table(const TempFolder& folder) {
  for (int i = 0; i < 2; ++i) {
    folder.write(std::to_string(i) + ".jpg", encode_jpeg(make_picture(40, 50, 3, static_cast<std::uint64_t>(i))));
  }
  return folder.write("t.csv", "path,price,rooms,note\n0.jpg,0.25,3,old\n1.jpg,1.75,4,new\n").string();
}

TEST(DataCommands, SayWhichColumnsTheyLeaveOutAndTakeThoseThatAreNamed) {
  const TempFolder folder;
  const std::string data = write_table(folder);
  const std::vector<std::string> digest = {"digest", "--pipeline",     "jpeg-eval", "--split",
                                           "train",  "--global-batch", "2",         "--data",
                                           data,     "--label-column", "price"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), digest.begin(), digest.end());
    return headrace(more);
  };
  const CommandResult unsaid = with({});
  EXPECT_EQ(unsaid.status, 2);
  EXPECT_THAT(unsaid.errors,
              HasSubstr("the label column 'price' holds numbers that are not whole, the first in line "
                        "2: '0.25'\n  hint: for values to predict, as float32, say --label-type number"));
  const CommandResult numbers = with({"--label-type", "number"});
  EXPECT_EQ(numbers.status, 0) << numbers.errors;
  EXPECT_EQ(
      numbers.reading,
      "headrace: reading " + data +
          ": a CSV table of images; image from path, label from price; labels: numbers to predict; left out of "
          "each record: rooms (integers), note (text); --columns takes them along\n");
  const CommandResult rooms = with({"--label-type", "number", "--columns", "rooms"});
  EXPECT_EQ(rooms.status, 0) << rooms.errors;
  EXPECT_THAT(rooms.reading, HasSubstr("left out of each record: note (text)"));
  EXPECT_NE(rooms.output, numbers.output) << "a field more";
  EXPECT_EQ(with({"--label-type", "class"}).status, 0);
  EXPECT_EQ(with({"--label-type", "number", "--columns", "note"}).status, 1);
  const CommandResult folders = headrace({"digest", "--pipeline", "jpeg-eval", "--split", "train", "--data",
                                          write_images(folder) + "/set", "--label-column", "price"});
  EXPECT_EQ(folders.status, 2);
  EXPECT_THAT(folders.errors,
              HasSubstr("holds images in folders, whose images are files and whose labels are folders"));
}

TEST(DoctorCommand, SaysWhichColumnsWereTakenAndLeftOut) {
  const TempFolder folder;
  const std::vector<std::string> doctor = {"doctor",         "--data",    write_table(folder),
                                           "--label-column", "price",     "--label-type",
                                           "number",         "--columns", "rooms"};
  CommandResult result = headrace(doctor);
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output,
              HasSubstr("columns  taken: image from path (text), label from price (numbers), rooms from "
                        "rooms (integers)\n         left out of each record: note (text)"));
  EXPECT_THAT(result.output, HasSubstr("train    2 records with numbers for labels; images of 50 x 40 pixels"));
  std::vector<std::string> in_json = doctor;
  in_json.insert(in_json.end(), {"--json", "-"});
  result = headrace(in_json);
  const auto line = nlohmann::json::parse(result.output.substr(0, result.output.find('\n')));
  EXPECT_EQ(line.at("columns")[1], (nlohmann::json{{"name", "price"}, {"holds", "numbers"}, {"field", "label"}}));
  EXPECT_EQ(line.at("columns")[3], (nlohmann::json{{"name", "note"}, {"holds", "text"}, {"field", nullptr}}));
}

TEST(DoctorCommand, SaysWhichSplitThereIsNotAndWhy) {
  const TempFolder folder;
  folder.write("train-images-idx3-ubyte", make_idx({10, 3, 3}));
  folder.write("train-labels-idx1-ubyte", make_idx({10}));
  CommandResult result = headrace({"doctor", "--data", folder.path().string()});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("train    10 records in 10 classes; "));
  EXPECT_THAT(result.output,
              HasSubstr("test     none: " + folder.path().string() + ": has no t10k-images-idx3-ubyte"));
  result = headrace({"doctor", "--data", (folder / "gone").string()});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("there is no such file or folder"));
  EXPECT_EQ(headrace({"doctor", "--examine", "3"}).status, 2) << "without --data";
}

TEST(TrainCommand, ALabelOutOfRangeObeysTheErrorPolicy) {
  const TempFolder folder;
  constexpr std::uint32_t kTrain = 10'064;
  folder.write("train-images-idx3-ubyte", make_idx({kTrain, 28, 28}));
  folder.write("t10k-images-idx3-ubyte", make_idx({10, 28, 28}));
  Bytes labels = make_idx({kTrain});
  for (std::size_t i = 8; i < labels.size(); ++i) labels[i] = static_cast<std::byte>(i % 10);
  labels[8 + 17] = std::byte{99};
  folder.write("train-labels-idx1-ubyte", labels);
  folder.write("t10k-labels-idx1-ubyte", make_idx({10}));
  const std::string quarantine = (folder / "bad.jsonl").string();
  const auto train = [&](const std::string& policy) {
    std::vector<std::string> arguments{
        "train",     "--recipe",     "mnist-mlp", "--data",     folder.path().string(),
        "--devices", "cpu:1",        "--epochs",  "1",          "--verbose",
        "0",         "--quarantine", quarantine,  "--on-error", policy};
    if (policy != "fail") arguments.insert(arguments.end(), {"--max-bad-share", "0.1"});
    return headrace(arguments);
  };
  const CommandResult failed = train("fail");
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.errors, HasSubstr("label 99 where there are 10 classes"));
  EXPECT_EQ(train("skip").status, 0);
  EXPECT_EQ(train("substitute").status, 0);
}

}  // namespace
}  // namespace headrace::test
