// The header from C++: it compiles, links, and its callbacks take functions of C++.
#include <cstring>
#include <iostream>
#include <vector>

#include <haul.h>

#include <arpa/inet.h>
#include <unistd.h>

namespace {

int asked = 0;

extern "C" int decide(void *context, const char *fingerprint) {
    asked += 1;
    return std::strcmp(static_cast<const char *>(context), fingerprint) == 0;
}

bool run() {
    char key[HAUL_FINGERPRINT_SIZE];
    haul_t identity = haul_identity_generate(), server = haul_endpoint(), client = haul_endpoint();
    if (haul_fingerprint(identity, key, sizeof key) != 0 || haul_set_identity(server, identity) != 0 || haul_trust_anyone(server) != 0) {
        return false;
    }
    // Under valgrind, beside other tests, a handshake takes seconds.
    for (haul_t end : {client, server}) {
        if (haul_setopt(end, HAUL_OPT_CONNTIMEO, 60000) != 0) {
            return false;
        }
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (haul_listen(server, reinterpret_cast<sockaddr *>(&address), length) != 0 ||
        haul_getsockname(server, reinterpret_cast<sockaddr *>(&address), &length) != 0 || haul_trust_callback(client, decide, key) != 0) {
        return false;
    }
    haul_t near = haul_connect(client, reinterpret_cast<sockaddr *>(&address), length), far = haul_accept(server, nullptr, nullptr);
    haul_t blocks = haul_stream_open(near, HAUL_BLOCKS);
    std::vector<char> data(100000, 'c');
    if (haul_block_send(blocks, data.data(), data.size()) != 0) {
        return false;
    }
    haul_block block{};
    haul_t in = haul_stream_accept(far, HAUL_BLOCKS);
    bool same = haul_block_recv(in, &block) == 1 && block.length == data.size() && std::memcmp(block.data, data.data(), data.size()) == 0;
    return same && haul_block_free(&block) == 0 && asked == 1;
}

}  // namespace

int main() {
    // A wait that nobody ends is a failure.
    alarm(300);
    bool fine = haul_startup() == 0 && run() && haul_cleanup() == 0;
    if (!fine) {
        std::cerr << haul_error_message() << '\n';
    }
    return fine ? 0 : 1;
}
