// Bulk transfer by libhaul, memory to memory: what bench/udt-bulk/main.cpp does by UDT, ported by the table of docs/reference/c.md. What the two files differ in is what a port has to do;
// arguments, the sender's loop and the meter are the same (bench/bulk.hpp).
#include <haul.h>
#include <netinet/in.h>

#include "../bulk.hpp"

namespace {

// A result is of 32 bits, or a handle or a count of 64; what is less than 0 is the code of an error.
int64_t check(int64_t result, const char* what) {
    if (result < 0) bulk::fail(std::string(what) + ": " + haul_error_message());
    return result;
}

// UDT's socket is haul's endpoint. One bound in the place of the windows and buffers; no UDP buffers to set.
haul_t open(const bulk::Plan& plan) {
    const haul_t endpoint = check(haul_endpoint(), "endpoint");
    check(haul_setopt(endpoint, HAUL_OPT_MEMORY, 2 * plan.window_bytes), "setopt");
    // UDT encrypts nothing and knows nobody; so does this, but for the encryption. An application names the key that it trusts.
    check(haul_trust_anyone(endpoint), "trust");
    return endpoint;
}

void receive(const bulk::Plan& plan) {
    const haul_t listener = open(plan);
    const haul_t identity = check(haul_identity_generate(), "identity");
    check(haul_set_identity(listener, identity), "identity");
    check(haul_listen(listener, reinterpret_cast<const sockaddr*>(&plan.address), sizeof plan.address), "listen");
    bulk::tell_listening();
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const haul_t connection = check(haul_accept(listener, reinterpret_cast<sockaddr*>(&from), &length), "accept");
    // A connection has streams, where UDT's was one.
    const haul_t stream = check(haul_stream_accept(connection, HAUL_UNI), "stream");
    bulk::meter(plan, [stream](char* buffer, int room) -> int64_t { return haul_recv(stream, buffer, static_cast<size_t>(room)); });
}

void send(const bulk::Plan& plan) {
    const haul_t endpoint = open(plan);
    const haul_t connection = check(haul_connect(endpoint, reinterpret_cast<const sockaddr*>(&plan.address), sizeof plan.address), "connect");
    const haul_t stream = check(haul_stream_open(connection, HAUL_UNI), "stream");
    const bool all = bulk::pump(plan, [stream](const char* buffer, int length) {
        return static_cast<int>(haul_send(stream, buffer, static_cast<size_t>(length)));
    });
    // UDT::close waited until what was in the buffer had arrived.
    if (all) {
        check(haul_shutdown(stream, HAUL_SHUT_WR), "shutdown");
        check(haul_flush(stream), "flush");
    }
}

}  // namespace

int main(int argc, char** argv) {
    const bulk::Plan plan = bulk::parse(argc, argv, "libhaul");
    check(haul_startup(), "startup");
    plan.receives ? receive(plan) : send(plan);
    haul_cleanup();
}
