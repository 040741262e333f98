-- A Wireshark dissector for haul's packets: what their clear headers say. See docs/use/debugging.md.
--
--   wireshark -X lua_script:scripts/haul.lua capture.pcap        (or tshark)
--
-- The payload is encrypted; `haul` can log the keys of its own connections. Layouts are those of crates/haul-proto/src/wire/mod.rs and
-- crates/haul-proto/src/handshake/wire.rs; a test of haul-inspect compares what is below with them.

local haul = Proto("haul", "haul transport")

local HANDSHAKE = { [0] = "CRYPTO", [1] = "RETRY", [2] = "VERSION" }
local LEVELS = { [0] = "Initial", [1] = "Handshake" }
local OPENER = { [0] = "client", [1] = "server" }
local KINDS = { [0] = "DATA", [1] = "CONTROL" }

-- Header of a control packet, of a data packet, and of a handshake packet as far as all versions have it.
local CONTROL_BYTES, DATA_BYTES, INVARIANT_BYTES, TAG_BYTES, RESET_BYTES = 16, 28, 18, 16, 24
local RESET = 0x3f

local f = {
    kind = ProtoField.uint8("haul.kind", "Kind", base.DEC, KINDS, 0x03),
    fin = ProtoField.bool("haul.fin", "Stream ends after these bytes", 8, nil, 0x04),
    last = ProtoField.bool("haul.end", "Block ends after these bytes", 8, nil, 0x08),
    path = ProtoField.uint8("haul.path", "Path"),
    epoch = ProtoField.uint8("haul.epoch", "Key epoch, modulo 256"),
    destination = ProtoField.uint32("haul.destination", "Receiver's connection id", base.HEX),
    number = ProtoField.uint64("haul.number", "Packet number"),
    stream = ProtoField.uint32("haul.stream", "Stream"),
    opener = ProtoField.uint32("haul.stream.opener", "Stream opened by", base.DEC, OPENER, 0x01),
    offset = ProtoField.uint64("haul.offset", "Offset in the stream"),
    sealed = ProtoField.bytes("haul.sealed", "Encrypted payload"),
    tag = ProtoField.bytes("haul.tag", "Tag"),
    handshake = ProtoField.uint8("haul.handshake", "Handshake packet", base.DEC, HANDSHAKE, 0x7f),
    version = ProtoField.uint8("haul.version", "Version"),
    source = ProtoField.uint32("haul.source", "Sender's connection id", base.HEX),
    attempt = ProtoField.uint64("haul.attempt", "Attempt", base.HEX),
    crypto_number = ProtoField.uint32("haul.handshake.number", "Packet number"),
    level = ProtoField.uint8("haul.handshake.level", "Level", base.DEC, LEVELS),
    echo = ProtoField.uint32("haul.handshake.echo", "Packet number answered"),
    reset_token = ProtoField.bytes("haul.reset_token", "Token of a stateless reset"),
}
haul.fields = f

local function handshake(buffer, pinfo, tree)
    if buffer:len() < INVARIANT_BYTES then return 0 end
    local kind = bit.band(buffer(0, 1):uint(), 0x7f)
    tree:add(f.handshake, buffer(0, 1))
    tree:add(f.version, buffer(1, 1))
    tree:add(f.destination, buffer(2, 4))
    tree:add(f.source, buffer(6, 4))
    tree:add(f.attempt, buffer(10, 8))
    local info = HANDSHAKE[kind] or "unknown handshake packet"
    if kind == 0 and buffer:len() >= 24 then
        tree:add(f.crypto_number, buffer(18, 4))
        tree:add(f.level, buffer(22, 1))
        info = string.format("%s %s number %d", info, LEVELS[buffer(22, 1):uint()] or "?", buffer(18, 4):uint())
    elseif buffer:len() >= 22 then
        tree:add(f.echo, buffer(18, 4))
    end
    pinfo.cols.info = info
    return buffer:len()
end

local function reset(buffer, pinfo, tree)
    if buffer:len() < RESET_BYTES then return 0 end
    tree:add(f.destination, buffer(4, 4))
    tree:add(f.reset_token, buffer(8, 16))
    pinfo.cols.info = string.format("RESET of %08x", buffer(4, 4):uint())
    return buffer:len()
end

local function data_phase(buffer, pinfo, tree)
    local kind = bit.band(buffer(0, 1):uint(), 0x03)
    local header = kind == 0 and DATA_BYTES or CONTROL_BYTES
    if KINDS[kind] == nil or buffer:len() < header + TAG_BYTES then return 0 end
    tree:add(f.kind, buffer(0, 1))
    tree:add(f.path, buffer(1, 1))
    tree:add(f.epoch, buffer(2, 1))
    tree:add(f.destination, buffer(4, 4))
    tree:add(f.number, buffer(8, 8))
    local info = string.format("%s path %d number %s", KINDS[kind], buffer(1, 1):uint(), tostring(buffer(8, 8):uint64()))
    local length = buffer:len() - header - TAG_BYTES
    if kind == 0 then
        tree:add(f.fin, buffer(0, 1))
        tree:add(f.last, buffer(0, 1))
        tree:add(f.stream, buffer(16, 4))
        tree:add(f.opener, buffer(16, 4))
        tree:add(f.offset, buffer(20, 8))
        info = string.format("%s stream %d offset %s length %d", info, buffer(16, 4):uint(), tostring(buffer(20, 8):uint64()), length)
    end
    if length > 0 then tree:add(f.sealed, buffer(header, length)) end
    tree:add(f.tag, buffer(header + length, TAG_BYTES))
    pinfo.cols.info = info
    return buffer:len()
end

function haul.dissector(buffer, pinfo, root)
    if buffer:len() < 1 then return 0 end
    local first = buffer(0, 1):uint()
    pinfo.cols.protocol = "haul"
    local tree = root:add(haul, buffer())
    if first >= 0x80 then return handshake(buffer, pinfo, tree) end
    if first == RESET then return reset(buffer, pinfo, tree) end
    return data_phase(buffer, pinfo, tree)
end

-- A conversation that begins with a hello of haul's is haul's, whatever its port: a first byte of 0x80 to 0x82, a version from 0 to 15, and for CRYPTO of a client
-- that knows no id of the server yet a destination of 0.
local function is_hello(buffer, pinfo, root)
    if buffer:len() < INVARIANT_BYTES or buffer(0, 1):uint() ~= 0x80 then return false end
    if buffer(1, 1):uint() == 0 or buffer(1, 1):uint() > 15 or buffer(2, 4):uint() ~= 0 then return false end
    haul.dissector(buffer, pinfo, root)
    pinfo.conversation = haul
    return true
end

haul:register_heuristic("udp", is_hello)
-- The port of `haul serve`; others by "Decode As".
DissectorTable.get("udp.port"):add(7700, haul)
