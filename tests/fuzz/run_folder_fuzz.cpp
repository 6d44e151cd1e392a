// What `headrace report` reads of a run's folder, and the page that it makes of it.
#include <map>
#include <string>

#include "headrace/devices/base/hash.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/fuzz/json_mutation.h"
#include "headrace/tests/support/temp_folder.h"
#include "headrace/tools/report/page.h"
#include "headrace/tools/runs/run_folder.h"

namespace headrace::fuzz {

using namespace test;
using namespace tools;

namespace {

Bytes lines_of(Bytes first, std::span<const std::byte> second) {
  first.push_back(std::byte{'\n'});
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

std::vector<Bytes> seeds() {
  return {
      to_bytes(
          R"({"epoch":1,"steps":200,"seconds":0.25,"examples_per_second":38055.5,"input_stall_fraction":0.1,)"
          R"("device_idle_fraction":0.05,"loss":0.73,"accuracy":0.74,"val_loss":0.56,"learning_rates":[0.001]})"),
      to_bytes(R"({"final":true,"test_loss":0.58,"test_accuracy":0.79,"weights_sha256":"f5df","replicas":1,)"
               R"("devices":"cpu:0","steps":200,"train_seconds":0.29,"seed":0,"bad_records":0})"),
      to_bytes(
          R"({"command":"headrace train","recipe":"mnist-mlp","device_descriptions":["CPU"],"replicas":1,"epochs":1,)"
          R"("started":"2026-11-24T03:59:11Z","warnings":["w"],"seconds":0.37,"status":"finished"})"),
      to_bytes(
          R"({"seconds":0.17,"examples":6368,"ready_share":0.7,"slots":3,"summary":"38137 images/s","stages":[{"name":)"
          R"("assemble","stage_kind":"assemble","threads":1,"items":6368,"ns_per_item":142.5,"occupancy":0.005,)"
          R"("wait_p50_us":851.9},{"name":"consumer","stage_kind":"consume","threads":1,"items":6368,"ns_per_item":)"
          R"(22246.8,"occupancy":0.85}],"verdict":{"bottleneck":"consumer","kind":"consumer",)"
          R"("ceiling_images_per_second":44950.2,"sentence":"s","what_ifs":[{"what":"w","images_per_second":1}]}})"),
      to_bytes(
          R"({"training":1,"begin_seconds":0,"end_seconds":0.33,"epoch":1,"step":200,"examples_per_second":38055.5,)"
          R"("input_stall_fraction":0,"device_idle_fraction":0.005,"sync_wait_fraction":0})")};
}

// As one of the files, chosen by its bytes, beside sound others; as the second line where a file has lines.
void run(std::span<const std::byte> input) {
  static const TempFolder folder;
  static const std::map<std::string, Bytes> sound = [] {
    const std::vector<Bytes> lines = seeds();
    return std::map<std::string, Bytes>{
        {kHistoryFile, lines[0]}, {kTimelineFile, lines[4]},       {kRunFile, lines[2]},
        {kInputFile, lines[3]},   {kModelFile, to_bytes("a net")}, {kPlanFile, to_bytes("a plan")}};
  }();
  static std::string changed;  // the one that the last input became
  for (const auto& [name, content] : sound) {
    if (changed.empty() || name == changed) folder.write(name, content);
  }
  changed = kRunFiles[xxh3(input) % kRunFiles.size()];
  folder.write(changed, changed.ends_with(".jsonl") ? lines_of(sound.at(changed), input) : to_bytes(input));
  make_page(run_data(read_run(folder.path())));
}

void repair(Bytes& input) {
  static const std::vector<Bytes> sound = seeds();
  make_json(input, sound);
}

}  // namespace headrace::fuzz
