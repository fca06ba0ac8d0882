// The page around the data: one self-contained HTML text. Its content policy forbids every request, so it works the
// same from a disk, a mail or a web server, and can tell nobody that it was opened.
#pragma once

#include <string>
#include <string_view>

namespace siamese::report {

// What every page has and no other file: its data.
inline constexpr std::string_view kPageMark = "id=\"report-data\"";

std::string escape_html(std::string_view text);

// JSON that may stand inside <script>: '<' (only ever inside a string) becomes \u003c, so neither "</script>" nor
// "<!--" can occur. U+2028 and U+2029 become escapes as well.
std::string escape_json_for_script(std::string_view text);

// An offline page may ask for nothing; a live one may ask the server that it came from, and nobody else.
enum class PageUse { offline, live };

// What a browser is told that a page may do.
std::string_view content_policy(PageUse use);

// `summary` is shown where scripts do not run; `script` draws the data.
std::string render_page(std::string_view title, std::string_view data_json, std::string_view summary,
                        std::string_view script, PageUse use = PageUse::offline);

}  // namespace siamese::report
