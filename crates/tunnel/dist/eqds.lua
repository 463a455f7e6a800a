-- Wireshark dissector of EQDS tunnels: version 1 (docs/eqds-wire.md), and version 0, figure 4 of the paper.
--
-- Copy it to a plugin folder (Help, About Wireshark, Folders), or: tshark -X lua_script:eqds.lua -r FILE
-- SPDX-License-Identifier: Apache-2.0

local bit = bit or bit32
local eqds = Proto("eqds", "Edge-Queued Datagram Service")

local PORT = 49016
local COMMON, MAC, LONGEST, TAG = 20, 8, 160, 16
local TYPES = {
    [1] = "Data", [2] = "Request to send", [3] = "Report", [4] = "Reset", [5] = "Close", [6] = "Probe",
}
local BODIES = { [1] = 12, [2] = 12, [3] = 20, [4] = 8, [5] = 8, [6] = 8 }
local SERVICE = { [0] = "Ordered", [1] = "Unordered", [2] = "Unreliable" }
local NEXT = { [0] = "Native", [4] = "IP", [5] = "VXLAN", [6] = "Super-packet" }
local REASONS = { [0] = "No such tunnel", [1] = "Old key epoch", [2] = "Challenge", [3] = "Refused by policy" }
local OPTIONS = {
    [1] = "MTU", [2] = "Capabilities", [3] = "Link rate", [4] = "SACK ranges", [5] = "NACK ranges", [6] = "Floor",
    [7] = "Challenge", [8] = "Answer",
}
-- Length of each option's value; ranges are multiples of 4 bytes.
local LENGTHS = { [1] = 2, [2] = 2, [3] = 4, [6] = 4, [7] = 8, [8] = 8 }
local FLAGS = {
    { 0x80, "trimmed", "Trimmed" }, { 0x40, "sealed", "Sealed" }, { 0x20, "ecn_echo", "ECN echo" },
    { 0x10, "pull", "PULL" }, { 0x08, "sack", "SACK" }, { 0x04, "nack", "NACK" }, { 0x02, "ack", "ACK" },
    { 0x01, "syn", "SYN" },
}

local f = {
    version = ProtoField.uint8("eqds.version", "Version", base.DEC, nil, 0xf0),
    type = ProtoField.uint8("eqds.type", "Type", base.DEC, TYPES, 0x0f),
    flags = ProtoField.uint8("eqds.flags", "Flags", base.HEX),
    original = ProtoField.uint16("eqds.original_length", "Original length"),
    key_id = ProtoField.uint32("eqds.key_id", "Key id", base.HEX),
    key_epoch = ProtoField.uint32("eqds.key_epoch", "Key epoch"),
    number = ProtoField.uint32("eqds.packet_number", "Packet number"),
    header = ProtoField.uint8("eqds.header_length", "Header length in words"),
    eqif = ProtoField.uint8("eqds.eqif", "EQIF id"),
    path = ProtoField.uint16("eqds.path", "Path id"),
    seq = ProtoField.uint32("eqds.seq", "Sequence number"),
    target = ProtoField.uint32("eqds.pull_target", "Pull target"),
    native_kind = ProtoField.uint8("eqds.native.kind", "Kind", base.DEC, { [0] = "Content", [1] = "Refusal" }),
    native_refusal = ProtoField.uint8("eqds.native.refusal", "Reason", base.DEC, { [0] = "No listener", [1] = "Full" }),
    native_from = ProtoField.uint16("eqds.native.srcport", "Source port"),
    native_to = ProtoField.uint16("eqds.native.dstport", "Destination port"),
    native_tag = ProtoField.uint32("eqds.native.tag", "Tag"),
    native_source4 = ProtoField.ipv4("eqds.native.src", "Source"),
    native_destination4 = ProtoField.ipv4("eqds.native.dst", "Destination"),
    native_source6 = ProtoField.ipv6("eqds.native.src6", "Source"),
    native_destination6 = ProtoField.ipv6("eqds.native.dst6", "Destination"),
    next = ProtoField.uint8("eqds.next", "Next protocol", base.DEC, NEXT),
    priority = ProtoField.uint8("eqds.priority", "Priority", base.DEC, nil, 0xe0),
    service = ProtoField.uint8("eqds.service", "Service", base.DEC, SERVICE, 0x18),
    about = ProtoField.uint32("eqds.number", "Number"),
    pull = ProtoField.uint32("eqds.pull_number", "Pull number"),
    busy = ProtoField.uint32("eqds.busy", "Busy time in us"),
    echo = ProtoField.uint32("eqds.echo", "Echo of packet number"),
    echo_epoch = ProtoField.uint16("eqds.echo_epoch", "Echo of key epoch, low 16 bits"),
    delay = ProtoField.uint16("eqds.delay", "Delay in us"),
    reason = ProtoField.uint8("eqds.reason", "Reason", base.DEC, REASONS),
    from_sender = ProtoField.bool("eqds.from_sender", "From the tunnel's sender", 8, nil, 0x80),
    token = ProtoField.uint32("eqds.token", "Token", base.HEX),
    size = ProtoField.uint16("eqds.size", "Size that arrived"),
    reserved = ProtoField.bytes("eqds.reserved", "Reserved"),
    option = ProtoField.uint8("eqds.option", "Option", base.DEC, OPTIONS),
    option_length = ProtoField.uint8("eqds.option.length", "Length"),
    mtu = ProtoField.uint16("eqds.mtu", "Longest UDP payload"),
    capabilities = ProtoField.uint16("eqds.capabilities", "Capabilities", base.HEX),
    rate = ProtoField.uint32("eqds.rate", "Link rate in Mb/s"),
    offset = ProtoField.uint16("eqds.range.offset", "Range: offset from the number"),
    packets = ProtoField.uint16("eqds.range.packets", "Range: packets"),
    floor = ProtoField.uint32("eqds.floor", "Floor"),
    challenge = ProtoField.uint64("eqds.challenge", "Challenge", base.HEX),
    answer = ProtoField.uint64("eqds.answer", "Answer", base.HEX),
    value = ProtoField.bytes("eqds.option.value", "Value"),
    mac = ProtoField.bytes("eqds.mac", "MAC"),
    message = ProtoField.uint32("eqds.message", "Message id"),
    message_offset = ProtoField.uint32("eqds.message.offset", "Offset in the message"),
    message_length = ProtoField.uint32("eqds.message.length", "Length of the message"),
    sealed_payload = ProtoField.bytes("eqds.sealed", "Sealed payload"),
    tag = ProtoField.bytes("eqds.tag", "Tag"),
    payload = ProtoField.bytes("eqds.payload", "Payload"),
    left = ProtoField.bytes("eqds.left", "Rest of the trimmed payload"),
    -- Version 0.
    flags0 = ProtoField.uint16("eqds.v0.flags", "Flags", base.HEX),
    priority0 = ProtoField.uint16("eqds.v0.priority", "Priority", base.DEC, nil, 0xe000),
    next0 = ProtoField.uint16("eqds.v0.next", "Next protocol", base.DEC, NEXT, 0x1fff),
    sender0 = ProtoField.uint16("eqds.v0.sender", "Sender id"),
}
local flag_fields, fields = {}, {}
for _, field in pairs(f) do fields[#fields + 1] = field end
for at, flag in ipairs(FLAGS) do
    flag_fields[at] = ProtoField.bool("eqds.flags." .. flag[2], flag[3], 8, nil, flag[1])
    fields[#fields + 1] = flag_fields[at]
end
eqds.fields = fields

local e = {
    malformed = ProtoExpert.new("eqds.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR),
    critical = ProtoExpert.new("eqds.critical", "Unknown option that must be known", expert.group.UNDECODED,
        expert.severity.WARN),
    unknown = ProtoExpert.new("eqds.unknown", "Unknown version or type", expert.group.UNDECODED, expert.severity.WARN),
    trimmed = ProtoExpert.new("eqds.trimmed", "A switch has trimmed the packet", expert.group.SEQUENCE,
        expert.severity.NOTE),
}
eqds.experts = { e.malformed, e.critical, e.unknown, e.trimmed }

local function complain(tree, what)
    tree:add_proto_expert_info(e.malformed, what)
end

local function flag_names(flags)
    local names = {}
    for at = #FLAGS, 1, -1 do
        if bit.band(flags, FLAGS[at][1]) ~= 0 then names[#names + 1] = FLAGS[at][3] end
    end
    return #names > 0 and " [" .. table.concat(names, ", ") .. "]" or ""
end

-- Adds the options; returns false if one is malformed.
local function options(tvb, tree)
    local at = 0
    while at < tvb:len() and tvb(at, 1):uint() ~= 0 do
        local kind = tvb(at, 1):uint()
        local length = at + 1 < tvb:len() and tvb(at + 1, 1):uint() or 0
        local padded = 4 * math.floor((length + 3) / 4)
        if length < 2 or at + padded > tvb:len() then
            complain(tree, "option " .. kind .. " has an illegal length")
            return false
        end
        local branch = tree:add(f.option, tvb(at, 1))
        branch:add(f.option_length, tvb(at + 1, 1))
        local value, first = length - 2, at + 2
        local wanted = LENGTHS[kind]
        if (wanted and value ~= wanted) or ((kind == 4 or kind == 5) and (value % 4 ~= 0 or value > 24)) then
            complain(branch, "option " .. kind .. " has an illegal length")
            return false
        elseif kind == 1 then branch:add(f.mtu, tvb(first, 2))
        elseif kind == 2 then branch:add(f.capabilities, tvb(first, 2))
        elseif kind == 3 then branch:add(f.rate, tvb(first, 4))
        elseif kind == 4 or kind == 5 then
            for range = first, first + value - 4, 4 do
                branch:add(f.offset, tvb(range, 2))
                branch:add(f.packets, tvb(range + 2, 2))
            end
        elseif kind == 6 then branch:add(f.floor, tvb(first, 4))
        elseif kind == 7 then branch:add(f.challenge, tvb(first, 8))
        elseif kind == 8 then branch:add(f.answer, tvb(first, 8))
        else
            if value > 0 then branch:add(f.value, tvb(first, value)) end
            if kind >= 128 then branch:add_proto_expert_info(e.critical) end
        end
        at = at + padded
    end
    return true
end

-- Adds the part that depends on the type; returns what the packet list says about it.
local function body(kind, tvb, tree)
    if kind == 1 or kind == 2 then
        tree:add(f.seq, tvb(0, 4))
        tree:add(f.target, tvb(4, 4))
        tree:add(f.next, tvb(8, 1))
        tree:add(f.priority, tvb(9, 1))
        tree:add(f.service, tvb(9, 1))
        tree:add(f.reserved, tvb(10, 2))
        return string.format(" Seq=%u Target=%u", tvb(0, 4):uint(), tvb(4, 4):uint())
    elseif kind == 3 then
        tree:add(f.about, tvb(0, 4))
        tree:add(f.pull, tvb(4, 4))
        tree:add(f.busy, tvb(8, 4))
        local delay = tvb(18, 2):uint()
        if delay ~= 65535 then
            tree:add(f.echo, tvb(12, 4))
            tree:add(f.echo_epoch, tvb(16, 2))
        end
        tree:add(f.delay, tvb(18, 2)):append_text(delay == 65535 and " (no echo)" or "")
        return string.format(" Number=%u Pull=%u Busy=%uus", tvb(0, 4):uint(), tvb(4, 4):uint(), tvb(8, 4):uint())
    elseif kind == 4 then
        tree:add(f.seq, tvb(0, 4))
        tree:add(f.reason, tvb(4, 1))
        tree:add(f.reserved, tvb(5, 3))
        return string.format(" Seq=%u, %s", tvb(0, 4):uint(), REASONS[tvb(4, 1):uint()] or "unknown reason")
    elseif kind == 5 then
        tree:add(f.about, tvb(0, 4))
        tree:add(f.from_sender, tvb(4, 1))
        tree:add(f.reserved, tvb(5, 3))
        return string.format(" Number=%u", tvb(0, 4):uint())
    end
    tree:add(f.token, tvb(0, 4))
    tree:add(f.size, tvb(4, 2))
    tree:add(f.reserved, tvb(6, 2))
    return string.format(" Token=0x%08x", tvb(0, 4):uint())
end

-- The head of a native message, in its first part; the rest of the part is content.
local function head(tvb, tree)
    local width = ({ [4] = 4, [6] = 16 })[tvb:len() > 1 and tvb(1, 1):uint() or 0]
    if width == nil or tvb(0, 1):uint() > 1 or tvb:len() < 12 + 2 * width then
        tree:add(f.payload, tvb())
        return
    end
    tree:add(f.native_kind, tvb(0, 1))
    if tvb(0, 1):uint() == 1 then tree:add(f.native_refusal, tvb(2, 1)) end
    tree:add(f.native_from, tvb(4, 2))
    tree:add(f.native_to, tvb(6, 2))
    tree:add(f.native_tag, tvb(8, 4))
    tree:add(width == 4 and f.native_source4 or f.native_source6, tvb(12, width))
    tree:add(width == 4 and f.native_destination4 or f.native_destination6, tvb(12 + width, width))
    if tvb:len() > 12 + 2 * width then tree:add(f.payload, tvb(12 + 2 * width)) end
end

local function payload(next, tvb, pinfo, tree, root)
    if next == 0 or next == 6 then
        if tvb:len() < 12 then
            complain(tree, "a part of a message without its three words")
            return
        end
        tree:add(f.message, tvb(0, 4))
        tree:add(f.message_offset, tvb(4, 4))
        tree:add(f.message_length, tvb(8, 4))
        if tvb(4, 4):uint() + tvb:len() - 12 > tvb(8, 4):uint() then
            complain(tree, "a part beyond the end of its message")
        end
        if next == 0 and tvb(4, 4):uint() == 0 and tvb:len() > 12 then
            head(tvb(12):tvb(), tree)
        elseif tvb:len() > 12 then
            tree:add(f.payload, tvb(12))
        end
        return
    end
    local name = next == 5 and "vxlan" or nil
    if next == 4 then name = bit.rshift(tvb(0, 1):uint(), 4) == 6 and "ipv6" or "ip" end
    local inside = name and Dissector.get(name)
    if inside then
        -- What is inside has its own columns; those of the tunnel stay.
        local info = tostring(pinfo.cols.info)
        inside:call(tvb, pinfo, root)
        pinfo.cols.protocol = "EQDS"
        pinfo.cols.info = info
    else
        tree:add(f.payload, tvb())
    end
end

local function version_1(tvb, pinfo, tree, root)
    local length = tvb:reported_len()
    tree:add(f.version, tvb(0, 1))
    local kind = bit.band(tvb(0, 1):uint(), 0xf)
    tree:add(f.type, tvb(0, 1))
    if not BODIES[kind] then
        tree:add_proto_expert_info(e.unknown)
        pinfo.cols.info = "Unknown type " .. kind
        return
    end
    local name = TYPES[kind]
    pinfo.cols.info = name
    if tvb:len() < COMMON then return complain(tree, "shorter than the common part") end
    local flags = tvb(1, 1):uint()
    local branch = tree:add(f.flags, tvb(1, 1))
    for at = 1, #FLAGS do branch:add(flag_fields[at], tvb(1, 1)) end
    local original, header = tvb(2, 2):uint(), 4 * tvb(16, 1):uint()
    tree:add(f.original, tvb(2, 2))
    tree:add(f.key_id, tvb(4, 4))
    tree:add(f.key_epoch, tvb(8, 4))
    tree:add(f.number, tvb(12, 4))
    tree:add(f.header, tvb(16, 1))
    tree:add(f.eqif, tvb(17, 1))
    tree:add(f.path, tvb(18, 2))
    local least = COMMON + BODIES[kind] + MAC
    if header < least or header > LONGEST or header > original then
        return complain(tree, "impossible header length of " .. header .. " bytes")
    elseif header > length then
        return complain(tree, "the header is cut")
    elseif length > original then
        return complain(tree, "more bytes than were sent")
    elseif header > tvb:len() then
        -- The capture, not a switch, has cut it.
        pinfo.cols.info:append(", cut by the capture")
        return
    end
    local summary = body(kind, tvb(COMMON, BODIES[kind]):tvb(), tree)
    pinfo.cols.info = name .. flag_names(flags) .. summary
    if header > least and not options(tvb(COMMON + BODIES[kind], header - least):tvb(), tree) then return end
    tree:add(f.mac, tvb(header - MAC, MAC))
    local is_trimmed = bit.band(flags, 0x80) ~= 0 or length < original
    if is_trimmed then
        tree:add_proto_expert_info(e.trimmed)
        pinfo.cols.info:append(", trimmed")
        if tvb:len() > header then tree:add(f.left, tvb(header)) end
    elseif tvb:len() < length then
        if tvb:len() > header then tree:add(f.payload, tvb(header)) end
    elseif length > header then
        local rest = tvb(header)
        if bit.band(flags, 0x40) ~= 0 then
            if rest:len() < TAG then return complain(tree, "a sealed payload without its tag") end
            if rest:len() > TAG then tree:add(f.sealed_payload, tvb(header, rest:len() - TAG)) end
            tree:add(f.tag, tvb(length - TAG, TAG))
        elseif kind == 1 then
            payload(tvb(COMMON + 8, 1):uint(), rest:tvb(), pinfo, tree, root)
        else
            tree:add(f.payload, rest)
        end
    end
end

local function version_0(tvb, pinfo, tree, root)
    if tvb:len() < 16 then return complain(tree, "shorter than a header of version 0") end
    tree:add(f.flags0, tvb(0, 2))
    local flags = tvb(1, 1):uint()
    if pinfo.src_port == PORT and pinfo.dst_port ~= PORT then
        pinfo.cols.info = string.format("Control (version 0), flags 0x%02x", flags)
        tree:add(f.sender0, tvb(2, 2))
        tree:add(f.about, tvb(4, 4))
        tree:add(f.pull, tvb(8, 4))
        tree:add(f.busy, tvb(12, 4))
        return
    end
    local is_request = bit.band(flags, 0x20) ~= 0
    pinfo.cols.info = string.format("%s (version 0), flags 0x%02x", is_request and "Request to send" or "Data", flags)
    tree:add(f.priority0, tvb(2, 2))
    tree:add(f.next0, tvb(2, 2))
    tree:add(f.seq, tvb(4, 4))
    tree:add(f.target, tvb(8, 4))
    tree:add(f.path, tvb(12, 2))
    tree:add(f.sender0, tvb(14, 2))
    if tvb:len() > 16 then tree:add(f.payload, tvb(16)) end
end

function eqds.dissector(tvb, pinfo, root)
    if tvb:len() == 0 then return 0 end
    pinfo.cols.protocol = "EQDS"
    local tree = root:add(eqds, tvb())
    local version = bit.rshift(tvb(0, 1):uint(), 4)
    if version == 1 then
        version_1(tvb, pinfo, tree, root)
    elseif tvb(0, 1):uint() == 0 then
        version_0(tvb, pinfo, tree, root)
    else
        tree:add_proto_expert_info(e.unknown)
        pinfo.cols.info = "Unknown version " .. version
    end
    return tvb:len()
end

DissectorTable.get("udp.port"):add(PORT, eqds)
