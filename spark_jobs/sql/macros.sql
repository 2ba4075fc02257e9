-- What the questions to the tables have in common. A place is partition and offset as one number, which sorts as they
-- do: 15 bits for the partition, 48 for the offset.
create macro place_of(partition, number) as (partition::bigint << 48) + number;
create macro partition_of(place) as (place >> 48)::int;
create macro offset_of(place) as place & ((1::bigint << 48) - 1);
-- As `onceproof.model.place.Place` writes it.
create macro place_text(role, partition, number) as role || '/' || partition || '@' || number;
create macro text_of_place(role, place) as place_text(role, partition_of(place), offset_of(place));
create macro records_text(number) as if(number = 1, '1 record', number || ' records');
create macro value_text(value) as coalesce(value::varchar, 'nothing');
create macro headers_text(headers) as if(coalesce(headers, '') = '', 'no header', headers);
-- Whether the drive of a trial came to its end; of one that failed some things are still due.
create macro has_ended(facts) as coalesce(facts['ended'], 1) = 1;
