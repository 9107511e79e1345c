-- Whether the server knows a shop's time zone was looked up in pg_timezone_names, which reads the file of each of
-- six hundred zones: most of what a report of sales took. Asked for a moment in it, the server reads one.
-- compatible-from: 0036
-- locks: nothing
CREATE FUNCTION known_zone(zone text) RETURNS text LANGUAGE plpgsql STABLE STRICT AS $$
BEGIN
    PERFORM now() AT TIME ZONE zone;
    RETURN zone;
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN NULL;
END $$;
