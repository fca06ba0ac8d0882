#include "siamese/report/page.h"

#include "siamese/report/assets.h"

namespace siamese::report {

std::string escape_html(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string escape_json_for_script(std::string_view text) {
  constexpr std::string_view kLineSeparator = "\xE2\x80\xA8", kParagraphSeparator = "\xE2\x80\xA9";
  std::string safe;
  safe.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view three = text.substr(i, 3);
    if (text[i] == '<') {
      safe += "\\u003c";
    } else if (three == kLineSeparator || three == kParagraphSeparator) {
      safe += three == kLineSeparator ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      safe += text[i];
    }
  }
  return safe;
}

std::string_view content_policy(PageUse use) {
  return use == PageUse::offline
             ? "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
             : "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
               "connect-src 'self'";
}

std::string render_page(std::string_view title, std::string_view data_json, std::string_view summary,
                        std::string_view script, PageUse use) {
  std::string page;
  page.reserve(data_json.size() + (64 << 10));
  page +=
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"";
  page += content_policy(use);
  page += "\">\n<link rel=\"icon\" href=\"data:,\">\n<title>";
  page += escape_html(title);
  page += "</title>\n<style>\n";
  page += style_text();
  page +=
      "</style>\n</head>\n<body>\n<noscript><p>The charts of this report need JavaScript; these are its "
      "results.</p><pre>";
  page += escape_html(summary);
  page += "</pre></noscript>\n<main id=\"report\"></main>\n<script type=\"application/json\" id=\"report-data\">";
  page += data_json;
  page += "</script>\n<script>\n(() => {\n\"use strict\";\n";
  page += script;
  page += "})();\n</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace siamese::report
