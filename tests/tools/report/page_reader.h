// A page of `headrace report` as a strict parser sees it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "headrace/tests/support/command.h"

namespace headrace::test {

inline bool can_read_pages() {
  return run_command({"/usr/bin/env", "python3", "-c", "import xml.etree.ElementTree"}).status == 0;
}

// "title"; "text" of the whole body; "titles": the tooltips; "rows" of the tables; "charts": how many; "foreign":
// what would be loaded or run. Null, with a failure, where the page is no well-formed XML.
inline nlohmann::json read_page(const std::filesystem::path& page) {
  static const char* const kScript = R"py(
import json, re, sys
import xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
def name(e): return e.tag.split('}')[1]
def all_of(*names): return [e for e in root.iter() if name(e) in names]
def text(e): return ''.join(e.itertext())
foreign = [name(e) for e in all_of('script', 'link', 'img', 'image', 'use', 'iframe', 'object', 'foreignObject')]
for e in root.iter():
    foreign += [k for k in e.attrib if k.startswith('on') or k.split('}')[-1] in ('href', 'src', 'style')]
foreign += re.findall(r'url\(|@import|https?://(?!www\.w3\.org/)', ' '.join(text(e) for e in all_of('style')))
print(json.dumps({
    'title': text(all_of('title')[0]), 'text': text(all_of('body')[0]),
    'titles': [text(e) for e in all_of('title')[1:]], 'foreign': foreign,
    'rows': [[text(c) for c in e] for e in all_of('tr')],
    'headings': [text(e) for e in all_of('h1', 'h2')],
    'captions': [text(e) for e in all_of('figcaption')],
    'charts': sum(e.get('class') == 'chart' for e in all_of('svg')),
    'stages': sum(e.get('class') == 'stage' for e in all_of('svg'))}))
)py";
  const CommandResult result = run_command({"/usr/bin/env", "python3", "-c", kScript, page.string()});
  EXPECT_EQ(result.status, 0) << page << ": " << result.errors;
  return nlohmann::json::parse(result.output, nullptr, false);
}

}  // namespace headrace::test
