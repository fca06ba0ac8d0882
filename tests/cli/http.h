// A client that says what it is told to and reads what comes: for the verbs that listen.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace siamese::cli {

// The port at the end of what a server printed; 0 when it printed none.
inline int printed_port(const std::string& out) {
  const size_t colon = out.rfind(':');
  return out.ends_with('\n') && colon != std::string::npos ? std::atoi(out.c_str() + colon + 1) : 0;
}

// What a server answers to a request: all of it, or as much as holds `until`.
inline std::string ask(int port, const std::string& request, const std::string& until = "") {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(client, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    char buffer[4096];
    for (ssize_t got = 0; (got = recv(client, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(got));
      if (!until.empty() && answer.find(until) != std::string::npos) break;
    }
  }
  close(client);
  return answer;
}

}  // namespace siamese::cli
