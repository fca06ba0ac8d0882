#include "siamese/report/live_page.h"

#include <nlohmann/json.hpp>

#include "siamese/report/assets.h"
#include "siamese/report/live_feed.h"
#include "siamese/report/page.h"

namespace siamese::report {

std::string live_page(std::string_view title) {
  const std::string data = escape_json_for_script(json_message({{"title", std::string(title)}}));
  return render_page(std::string(title) + " - siamese watch", data,
                     "A live page needs JavaScript; `siamese report` writes the results as a table, too.",
                     watch_script_text(), PageUse::live);
}

}  // namespace siamese::report
