/* What cannot be used: counted over several runs, and found by a pass over a source. */
#include "headrace/tests/bindings/c/check.h"

/* Of eight pictures of two classes one, of the first class, is cut short. */
static const char* damaged;

static hr_source* open_damaged(void) {
  hr_source* source = NULL;
  OK(hr_source_open(damaged, NULL, &source));
  return source;
}

static uint64_t run(const hr_loader_options* options) {
  hr_dataset* dataset = dataset_of(open_damaged());
  OK(hr_dataset_add(dataset, "decode", NULL));
  OK(hr_dataset_add(dataset, "map", "[{\"center_crop\": {\"size\": 8}}]"));
  OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 4}"));
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  OK(hr_dataset_describe(dataset, &info));
  CHECK(info.global_batch == 4);
  hr_loader* loader = loader_of(dataset, options);
  for (hr_batch* next = next_of(loader); next != NULL; next = next_of(loader)) hr_batch_free(next);
  hr_stats stats = HR_STATS_INIT;
  OK(hr_loader_stats(loader, &stats));
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  return stats.bad_records;
}

static void expect_the_short_one(const hr_bad_record* bad) {
  CHECK(bad->code == HR_DATA_CORRUPT && bad->record != HR_UNKNOWN);
  CHECK(strstr(bad->name, "003.png") != NULL && strcmp(bad->operation, "decode") == 0);
  CHECK(strstr(bad->source, "damaged") != NULL && bad->cause[0] != '\0');
}

static void test_a_tally_of_several_runs(void) {
  hr_tally* tally = NULL;
  hr_tally_count count = HR_TALLY_COUNT_INIT;
  hr_bad_record first = HR_BAD_RECORD_INIT;
  OK(hr_tally_create(&tally));
  OK(hr_tally_read(tally, &count));
  CHECK(count.bad == 0 && count.records == 0);
  FAILS(HR_NOT_FOUND, "no bad record", hr_tally_first(tally, &first));

  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.on_error = HR_ON_ERROR_SKIP;
  options.max_bad_share = 0.5;
  options.epochs = 3;
  options.tally = tally;
  CHECK(run(&options) == 3);
  options.on_error = HR_ON_ERROR_SUBSTITUTE;
  CHECK(run(&options) == 3);
  OK(hr_tally_read(tally, &count));
  CHECK(count.bad == 1 && count.records == 8);

  hr_convert_options convert = HR_CONVERT_OPTIONS_INIT;
  convert.quality = 80;
  convert.skip_bad = true;
  convert.max_bad_share = 0.5;
  convert.quarantine = "bad.jsonl";
  convert.tally = tally;
  remove(convert.quarantine);
  OK(hr_convert(damaged, "most.hrr", &convert, NULL));
  OK(hr_tally_read(tally, &count));
  CHECK(count.bad == 1 && count.records == 8);
  char line[4096] = {0};
  FILE* listed = fopen(convert.quarantine, "r");
  CHECK(listed != NULL && fgets(line, sizeof line, listed) != NULL && strstr(line, "003.png") != NULL);
  if (listed != NULL) fclose(listed);

  OK(hr_tally_first(tally, &first));
  expect_the_short_one(&first);
  hr_tally_free(tally);
}

static void test_loaders_keep_their_tally(void) {
  hr_tally* tally = NULL;
  OK(hr_tally_create(&tally));
  hr_dataset* dataset = numbers_in_batches(10, 4);
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.tally = tally;
  hr_loader* loader = loader_of(dataset, &options);
  hr_tally_free(tally);
  hr_batch* batch = next_of(loader);
  hr_batch_free(batch);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_an_inspection(void) {
  hr_source* source = open_damaged();
  hr_inspection* inspection = NULL;
  OK(hr_source_inspect(source, NULL, &inspection));
  hr_inspection_info info = HR_INSPECTION_INFO_INIT;
  OK(hr_inspection_describe(inspection, &info));
  CHECK(info.records == 8 && info.examined == 8 && info.bytes > 0);
  CHECK(info.min_height == 12 && info.max_height == 12 && info.min_width == 10 && info.max_width == 10);
  CHECK(info.label_count == 2 && info.labelled == 8 && info.oriented == 0);
  CHECK(info.bad == 1 && info.bad_listed == 1 && info.warned == 0 && info.warned_listed == 0);
  for (size_t i = 0; i < 2; ++i) {
    int64_t label = -1;
    uint64_t records = 0;
    OK(hr_inspection_label(inspection, i, &label, &records));
    CHECK(label == (int64_t)i && records == 4);
    FAILS(HR_INVALID_ARGUMENT, "there is no label 2", hr_inspection_label(inspection, 2, &label, &records));
  }
  hr_bad_record bad = HR_BAD_RECORD_INIT;
  OK(hr_inspection_bad_record(inspection, 0, &bad));
  expect_the_short_one(&bad);
  FAILS(HR_INVALID_ARGUMENT, "there is no listed record 0", hr_inspection_warned_record(inspection, 0, &bad));
  hr_inspection_free(inspection);

  hr_inspect_options options = HR_INSPECT_OPTIONS_INIT;
  options.max_examined = 2;
  options.max_listed = 0;
  OK(hr_source_inspect(source, &options, &inspection));
  OK(hr_inspection_describe(inspection, &info));
  CHECK(info.records == 8 && info.examined == 2 && info.bad_listed == 0);
  hr_inspection_free(inspection);
  hr_source_free(source);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  char path[512];
  snprintf(path, sizeof path, "%s/damaged", argv[1]);
  damaged = path;
  test_a_tally_of_several_runs();
  test_loaders_keep_their_tally();
  test_an_inspection();
  return end_of_test();
}
