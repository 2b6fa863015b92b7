true
false
(-32768)::int2
32767::int2
(-2147483648)::int4
2147483647
0
(-9223372036854775808)::int8
9007199254740993::int8
9223372036854775807
4294967295::oid
0::numeric
(-0.0)::numeric
0.10::numeric(10,2)
-123456789012345678901234567890.123456789012345678901234567890
1e-40::numeric
1e40::numeric
70::numeric(5,-1)
'NaN'::numeric
'Infinity'::numeric
'-Infinity'::numeric
0::float4
'-0'::float4
3.4028235e38::float4
1.1754944e-38::float4
1e-45::float4
0.1::float4
16777216::float4
'NaN'::float4
0::float8
'-0'::float8
1e20::float8
123456789012345680::float8
0.1::float8
-216237.00000035969::float8
1.7976931348623157e308::float8
5e-324::float8
1e-7::float8
'NaN'::float8
'Infinity'::float8
'-Infinity'::float8
'{"b": 1, "a" : [1.0, -0, 1e400, 1234567890123456789],"b":2}'::json
' null '::json
E'[1,\n\t2]'::json
'"\ud800"'::json
'"\u0000"'::json
'"a\u00e4\\\""'::json
(repeat('[', 300) || repeat(']', 300))::json
(repeat('[', 248) || repeat(']', 248))::json
(repeat('[', 249) || repeat(']', 249))::json
'{"b": 1, "a" : [1.0, -0, 1e2, 1234567890123456789],"b":2}'::jsonb
'"Ж\n\t\\"'::jsonb
'null'::jsonb
'\x'::bytea
'\x00ff5c27'::bytea
''::text
E'tab\tline\nreturn\rback\\slash\bbell\x07\f\v'
'Ж 𝄞 "quoted" ''single'''::text
'NULL'::text
E'\\N'::text
E'\\.'::text
'ab'::char(5)
'ab  '::varchar(10)
'a name'::name
'x'::"char"
'2026-11-29'::date
'infinity'::date
'-infinity'::date
'0002-11-30 BC'::date
'5874897-12-31'::date
'13:40:55.000001'::time
'24:00:00'::time
'13:40:55.5+05:30'::timetz
'2026-11-29 13:40:55'::timestamp
'infinity'::timestamp
'294276-12-31 23:59:59.999999'::timestamp
'4714-11-24 00:00:00 BC'::timestamp
'2026-11-29 13:40:55.5+02'::timestamptz
'-infinity'::timestamptz
'4714-11-24 00:00:00+00 BC'::timestamptz
'1 year 2 mons -3 days 04:05:06.789'::interval
'-178000000 years'::interval
'00:00:00'::interval
'-92233720368547758.08'::money
'00000000-0000-0000-0000-000000000000'::uuid
B'101'
''::varbit
'192.168.0.1/24'::inet
'2001:db8::/32'::cidr
'08:00:2b:01:02:03'::macaddr
'08:00:2b:01:02:03:04:05'::macaddr8
'(1.5,-2)'::point
'{1,2,3}'::line
'[(0,0),(1,1)]'::lseg
'(1,1),(0,0)'::box
'((0,0),(1,1))'::path
'((0,0),(1,1))'::polygon
'<(0,0),1.5>'::circle
'''a'':1A ''fat'':2'::tsvector
'''a'' & !''b'''::tsquery
'<a>x</a>'::xml
'$."a"[*] ? (@ > 1)'::jsonpath
'[1,5)'::int4range
'empty'::int8range
'(1.5,]'::numrange
'["2026-01-01 00:00:00",)'::tsrange
'[2026-01-01,2026-02-01)'::daterange
'{[1,5),[7,9)}'::int4multirange
'16/B374D848'::pg_lsn
'18446744073709551615'::xid8
'4294967295'::xid
'(0,1)'::tid
'10:20:10,14,15'::pg_snapshot
'pg_class'::regclass
'"some one"'::regrole
'1 2 3'::int2vector
'23 25'::oidvector
'so so'::mood
(1,'a "b", c')::pair
'{sad,NULL,"so so"}'::mood[]
'{}'::int4[]
'{1,-2,NULL,2147483647}'::int4[]
'{{1,2},{3,4}}'::int4[]
'{{{1},{2}},{{3},{4}}}'::int8[]
'{{{{{{1,2}}}}}}'::int2[]
'[0:2]={1,2,3}'::int4[]
'[1:1][-2:-1]={{1,2}}'::int4[]
'{t,f,NULL}'::bool[]
'{0.10,NaN,-Infinity,1e-10}'::numeric[]
'{1e20,-0,NaN,Infinity,0.1}'::float8[]
'{1.5,NULL}'::float4[]
ARRAY['', 'NULL', 'null', NULL, 'a b', 'a,b', '{x}', E'q"q', E'b\\s', E'new\nline\ttab', 'Ж', ' x ']
ARRAY['ab']::char(4)[]
ARRAY['{"a": [1,2], "b": "x\ny"}', 'null', NULL]::jsonb[]
ARRAY[E'{"a" :\n1}', '"\ud800"']::json[]
ARRAY['\x00ff', '\x', NULL, '\x616263']::bytea[]
'{"2026-11-29 13:40:55+00",-infinity}'::timestamptz[]
'{2026-11-29,"0002-11-30 BC"}'::date[]
'{"1 day",01:02:03}'::interval[]
'{(1,1),(0,0);(3,3),(2,2)}'::box[]
'{"(1,2)","(3,4)"}'::point[]
'{"[1,5)",empty}'::int4range[]
'{00000000-0000-0000-0000-000000000000,NULL}'::uuid[]
'{"<a>x, y</a>"}'::xml[]
'{192.168.0.1,::1/64}'::inet[]
'{4294967295}'::oid[]
'{"1 2","3"}'::int2vector[]
'{"$1.00"}'::money[]
ARRAY['a', ' ', '"', '\', ',', '{']::"char"[]
9.90::price
ARRAY[9.90]::price[]
ARRAY[(1,'x')::pair]
